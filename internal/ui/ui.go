// Package ui is the web pages: what people see of the objects in a browser, with the rights of whoever looks.
// It does not know how the API server is asked, nor how a process is started.
package ui

import (
	"context"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/view"
)

// Kind is what the pages know of one of our kinds.
type Kind struct {
	schema.GroupVersionKind

	// Resource is its plural name.
	Resource string
	// Page is the page that its objects are listed on.
	Page    string
	Columns []Column
}

func (k Kind) is(other Kind) bool { return k.Resource == other.Resource }

// Column is what a table shows of an object beside its name and state.
type Column struct {
	Title string
	Value func(*unstructured.Unstructured) string
}

// Lister lists and watches the objects that tables are made of.
type Lister interface {
	// Objects are the kind's, of all namespaces or of those that may be read. Lacking says, for people, which are missing and why;
	// nil for none.
	Objects(ctx context.Context, kind Kind) (objects cache.ListerWatcherWithContext, lacking error)
}

// Reader is how a person reads the cluster. Its errors are fit to be shown.
type Reader interface {
	Surveyor

	// Object reads one. The error is of type *NotFoundError where there is none.
	Object(ctx context.Context, kind Kind, namespace, name string) (*Object, error)
	// Why explains the release of an installation in lines of text.
	Why(ctx context.Context, namespace, name string) (string, error)
	// Plan shows in lines of text what the next release would change.
	Plan(ctx context.Context, namespace, name string) (string, error)
	// Can says which of the actions the person may do to the object.
	Can(ctx context.Context, obj *Object) []Action
	// Patch is what an action would send, as JSON, but for the time, and words in brackets for who suspends and why: these are noted
	// when it is done.
	Patch(obj *Object, action Action) (string, error)
	// Act does it, if the object is as it was shown; else the error is of type *ChangedError.
	Act(ctx context.Context, obj *Object, action Action, reason string) error
}

// Surveyor reads what several objects make up.
type Surveyor interface {
	// Tree is the object with what it is made from, and what is made of it. Beside the error stands what could be read.
	Tree(ctx context.Context, kind Kind, namespace, name string) (*view.Node, error)
	// Module is a module of the catalogue in the namespace, with the installations of the namespaces that are named; nil for those of all.
	// The error is of type *NotFoundError where there is none.
	Module(ctx context.Context, namespace, name string, in []string) (*Module, error)
	// Members says that something of what an installation has may have changed since it was asked, or since it said so last, until
	// the context ends. What it watches for that has a limit.
	Members(ctx context.Context, kind Kind, namespace, name string, stir func())
	// Running is what runs. It may be some seconds old.
	Running(ctx context.Context) *Running
}

// Action is something that is done to an object.
type Action string

// The actions, as buttons name them.
const (
	Reconcile Action = "reconcile"
	Suspend   Action = "suspend"
	Resume    Action = "resume"
	Approve   Action = "approve"
)

// NotFoundError says that there is no such object.
type NotFoundError struct{ What string }

// Error is for the person.
func (e *NotFoundError) Error() string { return e.What }

// ChangedError says that an object is not as it was when an action was shown.
type ChangedError struct{ What string }

// Error is for the person.
func (e *ChangedError) Error() string { return e.What }

// Options are what pages are made with.
type Options struct {
	Lister Lister
	Kinds  []Kind
	// Hosts are the names under which the pages are served, with their ports. Any other is refused.
	Hosts []string
	// Actions lets people act.
	Actions bool
	// Person is whose pages they are: whoever opens Entrance's URL is taken for them. Nil where people log in.
	Person *Person
	// Login says whose a bearer token is. The error is fit to be shown; it is of type *LoginError where it is nobody's.
	Login func(ctx context.Context, token string) (*Person, error)
	// ByHeader takes the token that comes with each request, instead of asking people for theirs.
	ByHeader bool
	// Encrypted says that browsers are talked to by TLS.
	Encrypted bool
	Logger    *slog.Logger
	Now       func() time.Time
	// Random are bytes that nobody can guess.
	Random io.Reader
}

// UI serves the pages.
type UI struct {
	Options

	index  *index
	pages  map[string]*template.Template
	assets assets
	// key is who is let in by the URL that was printed; nil where people log in.
	key    *key
	logins *logins
	base   string
	rooms  rooms
}

// New makes the pages.
func New(options Options) (*UI, error) {
	made, err := newAssets()
	if err != nil {
		return nil, err
	}
	u := &UI{
		Options: options, index: newIndex(options.Kinds, options.Now), assets: made, base: "/", rooms: roomsOf(1),
	}
	u.logins = newLogins(u)
	if options.Person != nil {
		u.index.attends = true
		if u.key, err = newKey(options.Random, u.logins.only(options.Person)); err != nil {
			return nil, err
		}
		u.base = "/" + u.key.path + "/"
	}
	if u.pages, err = u.templates(); err != nil {
		return nil, err
	}
	return u, nil
}

// Run reads the objects, and ends logins, until the context ends.
func (u *UI) Run(ctx context.Context) {
	go u.logins.run(ctx)
	u.index.run(ctx, u.Lister)
}

// Handler is what is served.
func (u *UI) Handler() http.Handler {
	inner := http.NewServeMux()
	inner.HandleFunc("GET /{$}", u.listing(u.reading(u.noted(u.overview))))
	for _, page := range listPages() {
		inner.HandleFunc("GET /"+page, u.listing(u.noted(u.list(page))))
	}
	inner.HandleFunc("GET /modules/{namespace}/{name}", u.working(u.noted(u.module)))
	inner.HandleFunc("GET /o/{group}/{kind}/{namespace}/{name}", u.working(u.noted(u.object)))
	inner.HandleFunc("GET /o/{group}/{kind}/{namespace}/{name}/graph", u.working(u.noted(u.graph)))
	inner.HandleFunc("GET /o/{group}/{kind}/{namespace}/{name}/why", u.working(u.text("why")))
	inner.HandleFunc("POST /o/{group}/{kind}/{namespace}/{name}/plan", u.planning(u.text("plan")))
	if u.Actions {
		inner.HandleFunc("GET /o/{group}/{kind}/{namespace}/{name}/do/{action}", u.working(u.confirm))
		inner.HandleFunc("POST /o/{group}/{kind}/{namespace}/{name}/do/{action}", u.working(u.act))
	}
	inner.HandleFunc("GET /live", u.live)
	inner.HandleFunc("POST /theme", u.theme)
	inner.HandleFunc("GET /assets/{name}", u.assets.serve)
	inner.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		u.fail(w, r, http.StatusNotFound, "There is no such page.")
	})
	return u.guard(u.let(inner))
}

// let lets those in who are known.
func (u *UI) let(in http.Handler) http.Handler {
	outer := http.NewServeMux()
	switch {
	case u.key != nil:
		outer.HandleFunc("GET /{$}", u.enter)
		outer.Handle(u.base, http.StripPrefix(u.base[:len(u.base)-1], u.known(u.inTurn(in))))
	case u.ByHeader:
		outer.HandleFunc("GET /healthz", u.healthy)
		outer.Handle("/", u.brought(u.inTurn(in)))
	default:
		outer.HandleFunc("GET /healthz", u.healthy)
		// The page that asks for the token looks like the others.
		outer.HandleFunc("GET /assets/{name}", u.assets.serve)
		outer.HandleFunc("POST /login", u.logIn)
		outer.Handle("POST /logout", u.loggedIn(http.HandlerFunc(u.logOut)))
		outer.Handle("/", u.loggedIn(u.inTurn(in)))
	}
	return outer
}

// listPages are the pages with tables.
func listPages() []string { return []string{"sources", "modules", "installations", "packages"} }
