package ui

import (
	"errors"
	"net/http"
	"slices"
	"time"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/view"
)

// Object is all that is told of one object.
type Object struct {
	view.Fact

	Kind            Kind
	Namespace, Name string
	// Version is the object's resourceVersion.
	Version    string
	Remedies   []view.Remedy
	Facts      []view.Titled
	Conditions []view.Condition
	Attempts   []modulesv1.HistoryEntry
	Events     []Event
	// YAML is its manifest, without what nobody wants to read, or is not to.
	YAML string
	// Awaited is the digest of the plan that waits for approval.
	Awaited string
	// Module is the one that it is about; nil for none.
	Module *ModuleName
	// Suspended says that it is.
	Suspended bool
	// Lacking are what could not be read, and why.
	Lacking []string
}

// Event is something that was told of the object.
type Event struct {
	Last                  time.Time
	Count                 int32
	Type, Reason, Message string
}

// objectPage is the page of an object.
type objectPage struct {
	*Object

	Actions []Action
	Graph   view.Graph
	// IsInstallation says that there are a plan, and a why.
	IsInstallation bool
	Path           string
}

// maxBoxes is how many boxes a graph has.
const maxBoxes = 150

// installationKind is the kind that has releases.
const installationKind = "ModuleInstallation"

// kindOf is the kind of the name, if it is one of ours.
func (u *UI) kindOf(group, kind string) (Kind, bool) {
	at := slices.IndexFunc(u.Kinds, func(k Kind) bool { return k.Group == group && k.Kind == kind })
	if at < 0 {
		return Kind{}, false
	}
	return u.Kinds[at], true
}

// read reads the object that the path names, or says why not.
func (u *UI) read(w http.ResponseWriter, r *http.Request) (*Object, bool) {
	kind, known := u.kindOf(r.PathValue("group"), r.PathValue("kind"))
	if !known {
		u.fail(w, r, http.StatusNotFound, "There is no such kind.")
		return nil, false
	}
	obj, err := loginOf(r).Reader.Object(r.Context(), kind, r.PathValue("namespace"), r.PathValue("name"))
	if err != nil {
		u.refuse(w, r, err)
		return nil, false
	}
	return obj, true
}

// refuse says why something could not be had.
func (u *UI) refuse(w http.ResponseWriter, r *http.Request, err error) {
	_, missing := errors.AsType[*NotFoundError](err)
	_, changed := errors.AsType[*ChangedError](err)
	switch {
	case missing:
		u.fail(w, r, http.StatusNotFound, err.Error())
	case changed:
		u.fail(w, r, http.StatusConflict, err.Error())
	default:
		u.fail(w, r, http.StatusBadGateway, err.Error())
	}
}

func (u *UI) object(w http.ResponseWriter, r *http.Request) {
	obj, ok := u.read(w, r)
	if !ok {
		return
	}
	made := objectPage{Object: obj, IsInstallation: obj.Kind.Kind == installationKind, Path: u.base + at(obj.Kind.Group, obj.Kind.Kind, obj.Namespace, obj.Name)}
	if u.Actions {
		made.Actions = loginOf(r).Reader.Can(r.Context(), obj)
	}
	root, err := loginOf(r).Reader.Tree(r.Context(), obj.Kind, obj.Namespace, obj.Name)
	if err != nil {
		obj.Lacking = append(obj.Lacking, err.Error())
	}
	if root != nil {
		made.Graph = view.NewGraph(root, maxBoxes)
	}
	u.show(w, r, http.StatusOK, "object", pageOf{
		Title: obj.Kind.Kind + " " + obj.Namespace + "/" + obj.Name, Here: obj.Kind.Page, Still: !u.sees(r, obj.Kind, obj.Namespace),
		Troubles: append(u.index.unheard(obj.Kind, obj.Namespace, obj.Name), obj.Lacking...), Content: made,
	})
}

// sees says that whoever asks may see the kind's objects of a namespace in tables, and is told of their changes.
func (u *UI) sees(r *http.Request, kind Kind, namespace string) bool {
	return u.mayOf(r.Context(), loginOf(r), kind.is, namespace).sees(kind, namespace)
}

// graphed is the page of a tree: a drawing, or nested lists.
type graphed struct {
	Path, Name string
	AsList     bool
	Graph      view.Graph
	Root       *view.Node
	Left       int
}

// maxListed is how many objects a page of nested lists has.
const maxListed = 1000

func (u *UI) graph(w http.ResponseWriter, r *http.Request) {
	kind, known := u.kindOf(r.PathValue("group"), r.PathValue("kind"))
	if !known {
		u.fail(w, r, http.StatusNotFound, "There is no such kind.")
		return
	}
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	root, err := loginOf(r).Reader.Tree(r.Context(), kind, namespace, name)
	if root == nil {
		u.refuse(w, r, err)
		return
	}
	made := graphed{Path: u.base + at(kind.Group, kind.Kind, namespace, name), Name: kind.Kind + " " + namespace + "/" + name, AsList: r.URL.Query().Get("as") == "list"}
	lacking := u.index.unheard(kind, namespace, name)
	if err != nil {
		lacking = append(lacking, err.Error())
	}
	if made.AsList {
		made.Root, made.Left = root.First(maxListed)
	} else {
		made.Graph = view.NewGraph(root, maxBoxes)
	}
	u.show(w, r, http.StatusOK, "graph", pageOf{Title: "Graph of " + made.Name, Here: kind.Page, Still: !u.sees(r, kind, namespace), Troubles: lacking, Content: made})
}

// told is a page of text.
type told struct{ Path, Name, What, Text string }

// text shows what a command tells of an installation.
func (u *UI) text(what string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		kind, known := u.kindOf(r.PathValue("group"), r.PathValue("kind"))
		if !known || kind.Kind != installationKind {
			u.fail(w, r, http.StatusNotFound, "This is for installations.")
			return
		}
		namespace, name := r.PathValue("namespace"), r.PathValue("name")
		reader := loginOf(r).Reader
		ask := reader.Why
		if what == "plan" {
			ask = reader.Plan
		}
		text, err := ask(r.Context(), namespace, name)
		if text == "" && err != nil {
			u.refuse(w, r, err)
			return
		}
		var lacking []string
		if err != nil {
			lacking = append(lacking, err.Error())
		}
		u.show(w, r, http.StatusOK, "text", pageOf{
			Title: what + " of " + namespace + "/" + name, Troubles: lacking,
			Content: told{u.base + at(kind.Group, kind.Kind, namespace, name), namespace + "/" + name, what, text},
		})
	}
}
