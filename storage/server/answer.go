package server

import (
	"io"
	"net/http"
	"time"
)

// answer counts what is sent.
type answer struct {
	http.ResponseWriter
	connection *place // nil without a listener of ours

	status int
	bytes  int64
}

func newAnswer(w http.ResponseWriter, r *http.Request) *answer {
	connection, _ := r.Context().Value(placeKey{}).(*place)
	return &answer{ResponseWriter: w, connection: connection, status: http.StatusOK}
}

func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	n, err := a.ResponseWriter.Write(p)
	a.bytes += int64(n)
	return n, err
}

// ReadFrom implements io.ReaderFrom. http.ServeContent hands over a limited file, which goes to the connection as it is.
func (a *answer) ReadFrom(src io.Reader) (n int64, err error) {
	to, ok := a.ResponseWriter.(io.ReaderFrom)
	if !ok {
		return io.Copy(writerOnly{a}, src)
	}
	if body, ok := src.(*io.LimitedReader); ok && body.N > 0 && a.connection != nil {
		a.connection.more = true
		// net/http would read the beginning of the file and copy it behind the header, were the header not on its way.
		if err := http.NewResponseController(a.ResponseWriter).Flush(); err != nil {
			return 0, err
		}
	}
	n, err = to.ReadFrom(src)
	a.bytes += n
	return n, err
}

// writerOnly hides ReadFrom from io.Copy.
type writerOnly struct{ io.Writer }

// refuseBody closes the connection after the answer, and does not wait for the request's body: net/http would read it
// to its end, at the client's pace. It lets the client read the answer nevertheless.
func (a *answer) refuseBody(now time.Time) {
	a.Header().Set("Connection", "close")
	_ = http.NewResponseController(a.ResponseWriter).SetReadDeadline(now) // A writer without a connection has none.
}
