package server

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// chunk is what a client has to accept within the progress timeout, in bytes.
const chunk = 64 << 10

// answer counts what is sent and moves the connection's write deadline on while bytes flow: a client that stops
// reading is cut, a slow one is not.
type answer struct {
	http.ResponseWriter
	control  *http.ResponseController
	progress time.Duration
	now      func() time.Time
	place    *place // nil without a listener of ours

	status int
	bytes  int64
}

func newAnswer(w http.ResponseWriter, r *http.Request, options Options) *answer {
	connection, _ := r.Context().Value(placeKey{}).(*place)
	return &answer{
		place:          connection,
		ResponseWriter: w,
		control:        http.NewResponseController(w),
		progress:       options.ProgressTimeout,
		now:            options.Now,
		status:         http.StatusOK,
	}
}

func (a *answer) WriteHeader(status int) {
	a.status = status
	a.extendDeadline()
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (written int, err error) {
	for len(p) > 0 && err == nil {
		a.extendDeadline()
		var n int
		n, err = a.ResponseWriter.Write(p[:min(len(p), chunk)])
		a.bytes += int64(n)
		written += n
		p = p[n:]
	}
	return written, err
}

// ReadFrom implements io.ReaderFrom. net/http turns each chunk into one sendfile if src is a limited file, which is
// what http.ServeContent hands over; a second limit round the first would hide the file.
func (a *answer) ReadFrom(src io.Reader) (written int64, err error) {
	limited, isLimited := src.(*io.LimitedReader)
	to, canSend := a.ResponseWriter.(io.ReaderFrom)
	if !isLimited || !canSend {
		return io.Copy(writerOnly{a}, src)
	}
	if a.place.announce() {
		// net/http would read the beginning of the file and copy it behind the header, were the header not on its way.
		if err := a.control.Flush(); err != nil {
			return 0, err
		}
		written, err = to.ReadFrom(src)
		a.bytes += written
		if !errors.Is(err, errors.ErrUnsupported) {
			return written, err
		}
	}
	part := &io.LimitedReader{R: limited.R}
	for {
		part.N = min(limited.N, chunk)
		n, err := to.ReadFrom(part)
		a.bytes += n
		written += n
		limited.N -= n
		if err != nil || n == 0 || limited.N == 0 {
			return written, err
		}
		a.extendDeadline()
	}
}

// writerOnly hides ReadFrom from io.Copy.
type writerOnly struct{ io.Writer }

// extendDeadline gives the client time for the next chunk. A writer without a connection has no deadline.
func (a *answer) extendDeadline() {
	_ = a.control.SetWriteDeadline(a.now().Add(a.progress))
}

// refuseBody closes the connection after the answer, and does not wait for the request's body: net/http would read it
// to its end, at the client's pace. It lets the client read the answer nevertheless.
func (a *answer) refuseBody() {
	a.Header().Set("Connection", "close")
	_ = a.control.SetReadDeadline(a.now())
}
