package upstream

import "net/http"

// Handler puts the fault in front of a server that this package does not know. It strikes every request; offsets
// count from the start of the body, except for the faults of a pack.
func (f Fault) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := &answer{ResponseWriter: w, ctx: r.Context(), fault: f.transfer, seen: func(int, int) {}}
		var err error
		if f.answers() {
			err = f.answer(out, r, Other)
		} else {
			next.ServeHTTP(out, r)
			err = out.broken
		}
		if err != nil {
			panic(http.ErrAbortHandler) // The only way to close a connection in the middle of an answer.
		}
	})
}

// HangBody goes silent after n bytes of the answer's body, until the client goes away or the server is closed.
func HangBody(n int64) Fault { return Fault{transfer: transfer{hang: n + 1}} }

// FlipBody flips a bit in the byte of the answer's body at the offset.
func FlipBody(offset int64) Fault { return Fault{transfer: transfer{flip: offset + 1}} }
