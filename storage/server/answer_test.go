package server

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"
)

// sending is a writer that takes bodies as they are, as that of net/http does.
type sending struct{ *httptest.ResponseRecorder }

func (s sending) ReadFrom(src io.Reader) (int64, error) { return io.Copy(s.ResponseRecorder, src) }

// TestAHeaderWaitsOnlyForABody: the kernel would keep the header of an empty body for 200 ms.
func TestAHeaderWaitsOnlyForABody(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{"": false, "hello": true} {
		a := &answer{ResponseWriter: sending{httptest.NewRecorder()}, connection: &place{}}
		if _, err := a.ReadFrom(io.LimitReader(strings.NewReader(body), int64(len(body)))); err != nil {
			t.Fatal(err)
		}
		if a.connection.more != want {
			t.Errorf("The header of %q waits for the body: %t", body, a.connection.more)
		}
	}
}
