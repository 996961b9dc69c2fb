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

// Column is what a table shows of an object beside its name and state.
type Column struct {
	Title string
	Value func(*unstructured.Unstructured) string
}

// Reader is how a person reads the cluster. Its errors are fit to be shown.
type Reader interface {
	// Objects lists and watches the kind, in all namespaces or in those that the person may read. Lacking says, for people, which
	// are missing and why; nil for none.
	Objects(ctx context.Context, kind Kind) (objects cache.ListerWatcherWithContext, lacking error)
	// Object reads one. The error is of type *NotFoundError where there is none.
	Object(ctx context.Context, kind Kind, namespace, name string) (*Object, error)
	// Tree is the object with what it is made from, and what is made of it. Beside the error stands what could be read.
	Tree(ctx context.Context, kind Kind, namespace, name string) (*view.Node, error)
	// Why explains the release of an installation in lines of text.
	Why(ctx context.Context, namespace, name string) (string, error)
	// Plan shows in lines of text what the next release would change.
	Plan(ctx context.Context, namespace, name string) (string, error)
	// Can says which of the actions the person may do to the object.
	Can(ctx context.Context, obj *Object) []Action
	// Patch is what an action would send, as JSON, but for who suspends and why, which are noted when it is done.
	Patch(obj *Object, action Action) (string, error)
	// Act does it, if the object is as it was shown; else the error is of type *ChangedError.
	Act(ctx context.Context, obj *Object, action Action, reason string) error
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
	Reader Reader
	Kinds  []Kind
	// Hosts are the names under which the pages are served, with their ports. Any other is refused.
	Hosts []string
	// Actions lets people act.
	Actions bool
	// User is whose rights are used, as the API server names it, to be shown.
	User   string
	Logger *slog.Logger
	Now    func() time.Time
	// Random are bytes that nobody can guess.
	Random io.Reader
}

// UI serves the pages to one person.
type UI struct {
	Options

	index   *index
	pages   map[string]*template.Template
	assets  assets
	key     *key
	base    string
	streams chan struct{}
	works   chan struct{}
}

// maxStreams is how many pages are live at once, and maxWorks how many requests are made for pages at once.
const maxStreams, maxWorks = 64, 4

// New makes the pages. They are there for whoever opens Key's URL.
func New(options Options) (*UI, error) {
	made, err := newAssets()
	if err != nil {
		return nil, err
	}
	key, err := newKey(options.Random)
	if err != nil {
		return nil, err
	}
	u := &UI{
		Options: options, index: newIndex(options.Kinds, options.Now), assets: made, key: key, base: "/" + key.path + "/",
		streams: make(chan struct{}, maxStreams), works: make(chan struct{}, maxWorks),
	}
	if u.pages, err = u.templates(); err != nil {
		return nil, err
	}
	return u, nil
}

// Run reads the objects until the context ends.
func (u *UI) Run(ctx context.Context) { u.index.run(ctx, u.Reader) }

// Handler is what is served.
func (u *UI) Handler() http.Handler {
	inner := http.NewServeMux()
	inner.HandleFunc("GET /{$}", u.overview)
	for _, page := range listPages() {
		inner.HandleFunc("GET /"+page, u.list(page))
	}
	inner.HandleFunc("GET /o/{group}/{kind}/{namespace}/{name}", u.working(u.object))
	inner.HandleFunc("GET /o/{group}/{kind}/{namespace}/{name}/graph", u.working(u.graph))
	inner.HandleFunc("GET /o/{group}/{kind}/{namespace}/{name}/why", u.working(u.text("why")))
	inner.HandleFunc("POST /o/{group}/{kind}/{namespace}/{name}/plan", u.working(u.text("plan")))
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
	outer := http.NewServeMux()
	outer.HandleFunc("GET /{$}", u.enter)
	outer.Handle(u.base, http.StripPrefix(u.base[:len(u.base)-1], u.known(inner)))
	return u.guard(outer)
}

// listPages are the pages with tables.
func listPages() []string { return []string{"sources", "modules", "installations", "packages"} }
