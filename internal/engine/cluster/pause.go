package cluster

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxPause is how long the client libraries may sleep when an answer asks for time. The API server itself asks for a
// second when it is busy; a webhook may ask for any time, which whoever called is told instead.
const maxPause = time.Second

// hasty keeps the client libraries from sleeping for long. What an answer of the API server asks for is in its body as
// well; that of a proxy before it has no other place for it.
type hasty struct{ next http.RoundTripper }

func (h *hasty) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := h.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	status := strings.HasPrefix(response.Header.Get("Content-Type"), "application/")
	if status && err == nil && time.Duration(seconds)*time.Second > maxPause {
		response.Header.Del("Retry-After")
	}
	return response, nil
}
