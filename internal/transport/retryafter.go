package transport

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter is the longest delay that an upstream may ask for.
const maxRetryAfter = time.Hour

// RetryAfter is the time before which an upstream does not want to be asked again, of an hour at most: seconds or a date,
// see RFC 9110, 10.2.3. Zero where it says nothing.
func RetryAfter(now time.Time, header http.Header) time.Duration {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(value, 10, 63); err == nil {
		return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(date.Sub(now), 0), maxRetryAfter)
}
