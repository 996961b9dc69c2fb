package registry

import (
	"net/http"
	"slices"
	"strings"
	"sync"
)

// journal remembers requests and what became of them.
type journal struct {
	mu       sync.Mutex
	requests []*Request
}

// Requests are all requests so far, in the order of their arrival.
func (j *journal) Requests() []Request {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := make([]Request, len(j.requests))
	for i, request := range j.requests {
		all[i] = *request
	}
	return all
}

// Count is the number of requests of these kinds so far; of all requests without a kind.
func (j *journal) Count(kinds ...Kind) int {
	count := 0
	for _, request := range j.Requests() {
		if len(kinds) == 0 || slices.Contains(kinds, request.Kind) {
			count++
		}
	}
	return count
}

// Sent is the number of bytes of answers' bodies to requests of these kinds so far; of all without a kind.
func (j *journal) Sent(kinds ...Kind) int64 {
	var sent int64
	for _, request := range j.Requests() {
		if len(kinds) == 0 || slices.Contains(kinds, request.Kind) {
			sent += request.BytesOut
		}
	}
	return sent
}

// Secrets are the values of all headers so far that may carry a credential, as "Name: value".
func (j *journal) Secrets() []string {
	var secrets []string
	for _, request := range j.Requests() {
		for name, values := range request.Header {
			switch strings.ToLower(name) {
			case "authorization", "proxy-authorization", "cookie", "x-registry-auth":
				for _, value := range values {
					secrets = append(secrets, name+": "+value)
				}
			}
		}
	}
	return secrets
}

func (j *journal) reset() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.requests = nil
}

// note writes down a request and returns a writer that notes its answer.
func (j *journal) note(request *Request, w http.ResponseWriter) http.ResponseWriter {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.requests = append(j.requests, request)
	return &noted{ResponseWriter: w, journal: j, request: request}
}

type noted struct {
	http.ResponseWriter
	journal *journal
	request *Request
}

// Unwrap lets http.ResponseController flush.
func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }

func (n *noted) WriteHeader(status int) {
	n.journal.mu.Lock()
	n.request.Status = status
	n.journal.mu.Unlock()
	n.ResponseWriter.WriteHeader(status)
}

// Write notes the bytes before they go, so that a client that has read them finds them noted.
func (n *noted) Write(p []byte) (int, error) {
	n.journal.mu.Lock()
	if n.request.Status == 0 {
		n.request.Status = http.StatusOK
	}
	n.request.BytesOut += int64(len(p))
	n.journal.mu.Unlock()
	return n.ResponseWriter.Write(p)
}
