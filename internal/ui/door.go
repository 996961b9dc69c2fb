package ui

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// loginCookie is the name of the cookie of a login. By its prefix, browsers take it from this host alone, and by TLS alone
// (RFC 6265bis, section 4.1.3.2).
const loginCookie = "__Host-sluice"

// asked is the page that asks for a token.
type asked struct {
	// To is where it leads to.
	To, Wrong string
}

// loggedIn lets those in who are logged in, and asks others for their token.
func (u *UI) loggedIn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if given, err := r.Cookie(loginCookie); err == nil {
			if known := u.logins.find(given.Value, byPerson(r)); known != nil {
				next.ServeHTTP(w, known.with(r))
				return
			}
		}
		u.askToken(w, r, http.StatusUnauthorized, asked{To: here(r.URL.RequestURI())})
	})
}

// byPerson says that somebody has asked for the page, and not the script of one that is open. Whoever does not say is somebody.
func byPerson(r *http.Request) bool {
	mode := r.Header.Get("Sec-Fetch-Mode")
	return mode == "" || mode == "navigate"
}

func (u *UI) askToken(w http.ResponseWriter, r *http.Request, code int, page asked) {
	u.show(w, r, code, "login", pageOf{Title: "Log in", Content: page})
}

// here is the path if it is one of these pages, else the overview.
func here(path string) string {
	parsed, err := url.Parse(path)
	if err != nil || parsed.IsAbs() || parsed.Host != "" || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\t\r\n") {
		return "/"
	}
	return path
}

// logIn swaps a token for a cookie. The token stays in memory.
func (u *UI) logIn(w http.ResponseWriter, r *http.Request) {
	to := here(r.PostFormValue("to"))
	id, err := unguessable(u.Random)
	if err != nil {
		u.Logger.Error("There are no random bytes", "error", err)
		http.Error(w, "There are no random bytes.", http.StatusInternalServerError)
		return
	}
	known, err := u.begin(r, id, r.PostFormValue("token"))
	if err != nil {
		u.askToken(w, r, codeOf(err), asked{To: to, Wrong: err.Error()})
		return
	}
	if former, err := r.Cookie(loginCookie); err == nil {
		u.logins.drop(former.Value)
	}
	http.SetCookie(w, &http.Cookie{Name: loginCookie, Value: id, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	u.Logger.Info("Somebody has logged in", "user", known.Name, "from", r.RemoteAddr)
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// begin begins a login with the token of a request.
func (u *UI) begin(r *http.Request, id, token string) (*login, error) {
	token = strings.TrimSpace(token)
	if token == "" || len(token) > maxToken {
		return nil, errNoToken
	}
	if !u.logins.mayTry(u.addressOf(r)) {
		return nil, errTries
	}
	ctx, stop := context.WithTimeout(r.Context(), reviewTime)
	defer stop()
	known, err := u.logins.begin(ctx, id, token)
	if err != nil {
		u.Logger.Info("Somebody was not let in", "from", r.RemoteAddr, "error", err)
	}
	return known, err
}

var errNoToken = errors.New("there is no token")

// addressOf is where a request comes from. A proxy that talks TLS to browsers adds that at the end; who comes by another way and says
// so themselves has no more tries than all have together.
func (u *UI) addressOf(r *http.Request) string {
	told := strings.Join(r.Header.Values("X-Forwarded-For"), ",")
	address, err := netip.ParseAddr(strings.TrimSpace(told[strings.LastIndexByte(told, ',')+1:]))
	if u.Encrypted || err != nil {
		return r.RemoteAddr
	}
	return address.WithZone("").String()
}

// codeOf is the status of a login in vain. Where it is not the token's fault, it is not for the person to log in anew.
func codeOf(err error) int {
	_, refused := errors.AsType[*LoginError](err)
	switch {
	case refused, errors.Is(err, errNoToken):
		return http.StatusUnauthorized
	case errors.Is(err, errFull):
		return http.StatusServiceUnavailable
	case errors.Is(err, errTries):
		return http.StatusTooManyRequests
	}
	return http.StatusBadGateway
}

// logOut ends the login, and with it its streams.
func (u *UI) logOut(w http.ResponseWriter, r *http.Request) {
	loginOf(r).end()
	http.SetCookie(w, &http.Cookie{Name: loginCookie, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: -1})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// brought lets those in whose token comes with the request, from a proxy that has made sure of it.
func (u *UI) brought(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Of two headers, one would be the proxy's, and nobody knows which.
		given := r.Header.Values("Authorization")
		scheme, token, found := strings.Cut(strings.Join(given, ""), " ")
		if !found || len(given) != 1 || !strings.EqualFold(scheme, "Bearer") {
			http.Error(w, "The request has no bearer token, or several: the proxy before this has to send one in the header Authorization.", http.StatusUnauthorized)
			return
		}
		known := u.logins.find(token, byPerson(r))
		if known == nil {
			var err error
			if known, err = u.begin(r, token, token); err != nil {
				http.Error(w, err.Error(), codeOf(err))
				return
			}
		}
		next.ServeHTTP(w, known.with(r))
	})
}

// inTurn lets nobody ask more than is fair.
func (u *UI) inTurn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loginOf(r).rate.AllowN(u.Now(), 1) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "Too many requests. Try again in a second.", http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// healthy says that the pages are served. It is for the node, which asks by the pod's address.
func (u *UI) healthy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n")) // Whoever has gone does not miss it.
}
