package registry

import (
	"net/http"
)

// serve is the way of every request through the registry; the comment on Registry tells it in words.
func (r *Registry) serve(w http.ResponseWriter, req *http.Request) {
	request := readRequest(req)
	seen := request // The journal's copy changes while the answer is sent.
	out := r.note(&seen, w)
	r.behind(request, true, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if request.Kind != Token && !r.gate.admits(w, req, request) {
			return
		}
		r.behind(request, false, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if before := r.hook(request.Kind); before != nil {
				before()
			}
			r.answer(w, req, request)
		})).ServeHTTP(w, req)
	})).ServeHTTP(out, req)
}

func (r *Registry) answer(w http.ResponseWriter, req *http.Request, request Request) {
	manners := r.currentManners()
	if change := r.rewriteOf(request); change != nil {
		change.answer(w, req, request, r.app)
		return
	}
	switch request.Kind {
	case Token:
		r.tokens.ServeHTTP(w, req)
	case Tags:
		serveTags(w, req, r.app, manners)
	case Referrers:
		if manners.withoutReferrers {
			writeError(w, http.StatusNotFound)
			return
		}
		r.referrers.serve(w, req, request, manners.referrersPage)
	case Push:
		r.referrers.observe(w, req, request, !manners.withoutReferrers)
	default:
		r.app.ServeHTTP(w, req)
	}
}

// manners are what a registry does for good, unlike a fault.
type manners struct {
	tagsPage, referrersPage int
	tagETags                bool
	withoutReferrers        bool
}

func (r *Registry) currentManners() manners {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.manners
}

func (r *Registry) hook(kind Kind) func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.before[kind]
}

// Before runs the function before each request of the kind is answered: a tag that it moves before a ManifestGET
// has moved between HEAD and GET. Nil takes it away.
func (r *Registry) Before(kind Kind, run func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before[kind] = run
}

// SetPageSize limits a page of the tag list to n tags; zero serves as many as the client asks for.
func (r *Registry) SetPageSize(n int) { r.setManners(func(m *manners) { m.tagsPage = n }) }

// SetReferrersPage limits a page of the referrers API to n entries; zero serves all at once.
func (r *Registry) SetReferrersPage(n int) { r.setManners(func(m *manners) { m.referrersPage = n }) }

// SetTagETags gives pages of the tag list an ETag and answers 304 to those who have it. Distribution has none.
func (r *Registry) SetTagETags(on bool) { r.setManners(func(m *manners) { m.tagETags = on }) }

// SetReferrersAPI switches the referrers API on or off. It starts on.
func (r *Registry) SetReferrersAPI(on bool) {
	r.setManners(func(m *manners) { m.withoutReferrers = !on })
}

// SetUsers changes who may come in.
func (r *Registry) SetUsers(users map[string]string) error {
	r.tokens.setUsers(users)
	return r.gate.setUsers(users)
}

// SetRealm changes where challenges send clients for a token; empty is this registry's own token server.
func (r *Registry) SetRealm(realm string) error {
	if realm == "" {
		realm = r.BaseURL() + tokenPath
	}
	return r.gate.setRealm(realm)
}

// RevokeTokens makes every token issued so far invalid: it changes the key that signs them.
func (r *Registry) RevokeTokens() error {
	if err := r.tokens.rotate(); err != nil {
		return err
	}
	return r.gate.rebuild()
}

func (r *Registry) setManners(set func(*manners)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	set(&r.manners)
}
