package registry

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/distribution/distribution/v3/registry/auth/token"
)

const (
	tokenPath = "/token"
	issuer    = "sluice test registry"
	// defaultExpiry is long enough for any test.
	defaultExpiry = 5 * time.Minute
)

// TokenRequest is what the token server saw of one request.
type TokenRequest struct {
	Method string
	// Username and Password are those of basic authentication, or of a form with the grant type password.
	Username, Password string
	// RefreshToken is the identity token of a form with the grant type refresh_token.
	RefreshToken string
	// Service and Scopes are what the token is for.
	Service string
	Scopes  []string
	// Status is the status of the answer.
	Status int
}

// TokenServer issues the tokens that Distribution's token check accepts: by GET with basic authentication or
// without any, and by POST with an identity token or a password ("Token Authentication Specification" and "OAuth2
// token authentication" of Distribution).
type TokenServer struct {
	service   string
	anonymous bool

	mu       sync.Mutex
	users    map[string]string
	permit   func(user, repository, action string) bool
	expiry   time.Duration
	signer   *signer
	requests []TokenRequest
}

func newTokenServer(service string, users map[string]string, anonymous bool) (*TokenServer, error) {
	s := &TokenServer{service: service, anonymous: anonymous, users: maps.Clone(users), expiry: defaultExpiry}
	return s, s.rotate()
}

// SetExpiry says how long tokens live from now on. Distribution takes a token for a minute longer; a negative
// expiry of more than that issues tokens that never work. Zero leaves it to the client to know: tokens live five
// minutes, and the answer does not say so.
func (s *TokenServer) SetExpiry(expiry time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expiry = expiry
}

// Permit lets the function decide what a user (empty: nobody) may do with a repository. Without it a user may do
// everything, and nobody may pull if the registry is open to anonymous clients.
func (s *TokenServer) Permit(permit func(user, repository, action string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.permit = permit
}

// IdentityToken is the user's refresh token.
func (*TokenServer) IdentityToken(user string) string { return "identity-token-of-" + user }

// RegistryToken issues a token for a repository without a request.
func (s *TokenServer) RegistryToken(repository string, actions ...string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.issue("registry-token", []*token.ResourceActions{{Type: "repository", Name: repository, Actions: actions}})
}

// Requests are all requests so far, in the order of their arrival.
func (s *TokenServer) Requests() []TokenRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Count is the number of requests so far.
func (s *TokenServer) Count() int { return len(s.Requests()) }

// ServeHTTP answers a request for a token. It may be served elsewhere too: see Registry.SetRealm.
func (s *TokenServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
	if err := r.ParseForm(); err != nil {
		writeError(w, http.StatusBadRequest)
		return
	}
	request := readTokenRequest(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	status, answer := s.answer(request)
	request.Status = status
	s.requests = append(s.requests, request)
	if status != http.StatusOK {
		writeError(w, status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // A client that has gone needs no token.
}

func readTokenRequest(r *http.Request) TokenRequest {
	request := TokenRequest{
		Method: r.Method, Service: r.Form.Get("service"),
		// Both several parameters and one with spaces are in use.
		Scopes: strings.Fields(strings.Join(r.Form["scope"], " ")),
	}
	request.Username, request.Password, _ = r.BasicAuth()
	if r.Method == http.MethodPost {
		request.RefreshToken = r.PostForm.Get("refresh_token")
		if r.PostForm.Get("grant_type") == "password" {
			request.Username, request.Password = r.PostForm.Get("username"), r.PostForm.Get("password")
		}
	}
	return request
}

func (s *TokenServer) answer(request TokenRequest) (int, map[string]any) {
	user, ok := s.user(request)
	switch {
	case !ok:
		return http.StatusUnauthorized, nil
	case request.Service != s.service:
		return http.StatusBadRequest, nil
	}
	raw, err := s.issue(user, s.grant(user, request.Scopes))
	if err != nil {
		return http.StatusInternalServerError, nil
	}
	answer := map[string]any{"access_token": raw, "issued_at": time.Now().UTC().Format(time.RFC3339)}
	if request.Method == http.MethodGet {
		answer["token"] = raw
	}
	if s.expiry != 0 {
		answer["expires_in"] = int(s.expiry / time.Second)
	}
	return http.StatusOK, answer
}

// user tells who asks; nobody is a user too, where anonymous clients are let in.
func (s *TokenServer) user(request TokenRequest) (string, bool) {
	if request.RefreshToken != "" {
		for user := range s.users {
			if same(request.RefreshToken, s.IdentityToken(user)) {
				return user, true
			}
		}
		return "", false
	}
	if request.Username == "" && request.Password == "" {
		return "", s.anonymous
	}
	password, ok := s.users[request.Username]
	return request.Username, ok && same(password, request.Password)
}

// grant leaves of the scopes what the user may do.
func (s *TokenServer) grant(user string, scopes []string) []*token.ResourceActions {
	var granted []*token.ResourceActions
	for _, scope := range scopes {
		kind, rest, _ := strings.Cut(scope, ":")
		at := strings.LastIndex(rest, ":")
		if at < 0 {
			continue
		}
		resource := &token.ResourceActions{Type: kind, Name: rest[:at], Actions: []string{}}
		for action := range strings.SplitSeq(rest[at+1:], ",") {
			if s.permits(user, resource.Name, action) {
				resource.Actions = append(resource.Actions, action)
			}
		}
		granted = append(granted, resource)
	}
	return granted
}

func (s *TokenServer) permits(user, repository, action string) bool {
	if s.permit != nil {
		return s.permit(user, repository, action)
	}
	return user != "" || action == "pull"
}

func (s *TokenServer) issue(user string, access []*token.ResourceActions) (string, error) {
	expiry := s.expiry
	if expiry == 0 {
		expiry = defaultExpiry
	}
	now := time.Now()
	return s.signer.sign(token.ClaimSet{
		Issuer: issuer, Subject: user, Audience: token.AudienceList{s.service}, JWTID: fmt.Sprint(len(s.requests)),
		IssuedAt: now.Unix(), NotBefore: now.Add(-time.Minute).Unix(), Expiration: now.Add(expiry).Unix(), Access: access,
	})
}

func (s *TokenServer) keys() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.signer.jwks()
}

func (s *TokenServer) rotate() error {
	signer, err := newSigner()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signer = signer
	return nil
}

func (s *TokenServer) setUsers(users map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users = maps.Clone(users)
}

func (s *TokenServer) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
