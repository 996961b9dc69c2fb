package upstream

import (
	"crypto/subtle"
	"net/http"
	"strings"
)

// Access is what a server asks of its clients. The zero Access asks nothing. With both a name and a token,
// either is enough.
type Access struct {
	Username, Password string
	BearerToken        string
}

func (a Access) admits(r *http.Request) bool {
	if a == (Access{}) {
		return true
	}
	if name, password, ok := r.BasicAuth(); ok {
		return a.Username != "" && same(name, a.Username) && same(password, a.Password)
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && a.BearerToken != "" && same(token, a.BearerToken)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func (a Access) challenge(w http.ResponseWriter) {
	scheme := "Bearer"
	if a.Username != "" {
		scheme = "Basic"
	}
	w.Header().Set("WWW-Authenticate", scheme+` realm="upstream"`)
	http.Error(w, "authentication required", http.StatusUnauthorized)
}
