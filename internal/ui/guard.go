package ui

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// policy lets pages do nothing but what their own files do. The browser makes no HTML of strings but for the one policy of ours.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types sluice"

const (
	maxBody = 64 << 10
	// patience is how long a request may take that is no stream.
	patience = 30 * time.Second
)

// guard refuses what comes from other pages, or by other names than those that are served, so that no name of another site that
// leads here by DNS is taken for ours. It is before everything, assets too.
func (u *UI) guard(next http.Handler) http.Handler {
	protected := http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers := w.Header()
		headers.Set("Content-Security-Policy", policy)
		headers.Set("X-Content-Type-Options", "nosniff")
		headers.Set("Referrer-Policy", "no-referrer")
		headers.Set("Cross-Origin-Opener-Policy", "same-origin")
		headers.Set("Cross-Origin-Resource-Policy", "same-origin")
		headers.Set("Cache-Control", "no-store")
		// The deadline of the last answer stays with a connection.
		u.within(w, patience)
		if u.Encrypted {
			headers.Set("Strict-Transport-Security", "max-age=31536000")
		}
		// A node asks for the health by the pod's address.
		if !slices.ContainsFunc(u.Hosts, func(host string) bool { return strings.EqualFold(host, r.Host) }) && (u.key != nil || r.URL.Path != "/healthz") {
			http.Error(w, "This is not served under that name.", http.StatusMisdirectedRequest)
			return
		}
		if r.Method != http.MethodGet {
			_ = http.NewResponseController(w).SetReadDeadline(u.Now().Add(patience))
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		protected.ServeHTTP(w, r)
	})
}

// within gives an answer its time. A connection that knows no deadlines has the server's.
func (u *UI) within(w http.ResponseWriter, limit time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(u.Now().Add(limit))
}
