package registry

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/distribution/distribution/v3/registry/auth"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd" // the access check of Basic
	_ "github.com/distribution/distribution/v3/registry/auth/token"    // the access check of Token
	"golang.org/x/crypto/bcrypt"
)

// Auth is what a registry asks of its clients.
type Auth string

// The access modes.
const (
	None      Auth = ""      // nothing
	Basic     Auth = "basic" // a name and a password with every request
	TokenAuth Auth = "token" // a token of the token server
)

// gate is Distribution's own access check for a mode, asked in front of Distribution so that the owner of a test
// can go round it.
type gate struct {
	mode   Auth
	dir    string
	tokens *TokenServer

	mu         sync.RWMutex
	realm      string
	users      map[string]string
	files      int
	controller auth.AccessController
}

func newGate(dir string, options Options, realm string, tokens *TokenServer) (*gate, error) {
	g := &gate{mode: options.Auth, dir: dir, tokens: tokens, realm: realm, users: maps.Clone(options.Users)}
	return g, g.rebuild()
}

func (g *gate) setUsers(users map[string]string) error {
	g.mu.Lock()
	g.users = maps.Clone(users)
	g.mu.Unlock()
	return g.rebuild()
}

func (g *gate) setRealm(realm string) error {
	g.mu.Lock()
	g.realm = realm
	g.mu.Unlock()
	return g.rebuild()
}

// rebuild makes the access check anew from what it depends on.
func (g *gate) rebuild() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var parameters map[string]any
	var err error
	switch g.mode {
	case None:
		return nil
	case Basic:
		parameters, err = g.htpasswd()
	case TokenAuth:
		parameters, err = g.token()
	default:
		err = fmt.Errorf("unknown access mode %q", g.mode)
	}
	if err != nil {
		return err
	}
	g.controller, err = auth.GetAccessController(map[Auth]string{Basic: "htpasswd", TokenAuth: "token"}[g.mode], parameters)
	return err
}

func (g *gate) htpasswd() (map[string]any, error) {
	var file strings.Builder
	for _, name := range slices.Sorted(maps.Keys(g.users)) {
		hash, err := bcrypt.GenerateFromPassword([]byte(g.users[name]), bcrypt.MinCost)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&file, "%s:%s\n", name, hash)
	}
	path, err := g.write("htpasswd", []byte(file.String()))
	return map[string]any{"realm": "registry", "path": path}, err
}

func (g *gate) token() (map[string]any, error) {
	keys, err := g.tokens.keys()
	if err != nil {
		return nil, err
	}
	path, err := g.write("jwks", keys)
	return map[string]any{"realm": g.realm, "issuer": issuer, "service": g.tokens.service, "jwks": path}, err
}

// write writes each time to another file: the checks know a changed file by its time alone.
func (g *gate) write(name string, content []byte) (string, error) {
	g.files++
	path := filepath.Join(g.dir, fmt.Sprintf("%s-%d", name, g.files))
	return path, os.WriteFile(path, content, 0o600)
}

// admits lets the request in or answers it. What each method needs is as in Distribution.
func (g *gate) admits(w http.ResponseWriter, r *http.Request, request Request) bool {
	g.mu.RLock()
	controller := g.controller
	g.mu.RUnlock()
	if controller == nil {
		return true
	}
	grant, err := controller.Authorized(r, accesses(r, request)...)
	if err == nil && grant != nil {
		return true
	}
	if challenge, ok := errors.AsType[auth.Challenge](err); ok {
		challenge.SetHeaders(r, w)
		writeError(w, http.StatusUnauthorized)
		return false
	}
	writeError(w, http.StatusBadRequest)
	return false
}

func accesses(r *http.Request, request Request) []auth.Access {
	if request.Repository == "" {
		if r.URL.Path == "/v2/_catalog" {
			return []auth.Access{{Resource: auth.Resource{Type: "registry", Name: "catalog"}, Action: "*"}}
		}
		return nil
	}
	repository := func(name, action string) auth.Access {
		return auth.Access{Resource: auth.Resource{Type: "repository", Name: name}, Action: action}
	}
	var list []auth.Access
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		list = append(list, repository(request.Repository, "pull"))
	case http.MethodDelete:
		list = append(list, repository(request.Repository, "delete"))
	default:
		list = append(list, repository(request.Repository, "pull"), repository(request.Repository, "push"))
	}
	if from := r.URL.Query().Get("from"); from != "" {
		list = append(list, repository(from, "pull"))
	}
	return list
}
