package ui

import (
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// cookieName is the name of the cookie of whoever has had the key.
const cookieName = "sluice"

// key lets the one in who has the URL that was printed, and nobody else of the machine. It is good once; then a cookie is, under a
// path that nobody can guess, since cookies are sent to every port of a host.
type key struct {
	path, cookie string
	login        *login

	mu   sync.Mutex
	once string
}

// randomBytes is how many bytes nobody can guess.
const randomBytes = 32

func newKey(random io.Reader, whose *login) (*key, error) {
	made := &key{login: whose}
	for _, to := range []*string{&made.path, &made.cookie, &made.once} {
		var err error
		if *to, err = unguessable(random); err != nil {
			return nil, err
		}
	}
	return made, nil
}

func unguessable(random io.Reader) (string, error) {
	raw := make([]byte, randomBytes)
	if _, err := io.ReadFull(random, raw); err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(raw), nil
}

// take is true once for the right key.
func (k *key) take(given string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.once == "" || subtle.ConstantTimeCompare([]byte(given), []byte(k.once)) != 1 {
		return false
	}
	k.once = ""
	return true
}

// Entrance is the path of the URL that lets its first visitor in.
func (u *UI) Entrance() string {
	u.key.mu.Lock()
	defer u.key.mu.Unlock()
	return "/?key=" + u.key.once
}

// enter swaps the key for a cookie.
func (u *UI) enter(w http.ResponseWriter, r *http.Request) {
	if !u.key.take(r.URL.Query().Get("key")) {
		http.Error(w, "The URL that was printed is good once. Start the command again for another one.", http.StatusForbidden)
		return
	}
	//nolint:gosec // It is HTTP, of this machine alone: a cookie that is Secure would not come back.
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: u.key.cookie, Path: u.base, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, u.base, http.StatusSeeOther)
}

// known lets those in who have the cookie.
func (u *UI) known(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, err := r.Cookie(cookieName)
		if err != nil || subtle.ConstantTimeCompare([]byte(given.Value), []byte(u.key.cookie)) != 1 {
			http.Error(w, "Open the URL that was printed.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, u.key.login.with(r))
	})
}
