package ui

import (
	"net/http"
	"slices"
)

// confirmed is the page that asks before something is done.
type confirmed struct {
	*Object

	Action Action
	Patch  string
	Path   string
	// Needs says that a reason is asked for.
	Needs bool
}

// maxReason is how long the reason for a suspension may be.
const maxReason = 512

// action is the one that the path names, if it may be done to the object.
func (u *UI) action(w http.ResponseWriter, r *http.Request, obj *Object) (Action, bool) {
	action := Action(r.PathValue("action"))
	if !slices.Contains(loginOf(r).Reader.Can(r.Context(), obj), action) {
		u.fail(w, r, http.StatusForbidden, "You may not "+string(action)+" this, or it is not as it was.")
		return "", false
	}
	return action, true
}

// confirm shows what would be sent.
func (u *UI) confirm(w http.ResponseWriter, r *http.Request) {
	obj, ok := u.read(w, r)
	if !ok {
		return
	}
	action, ok := u.action(w, r, obj)
	if !ok {
		return
	}
	patch, err := loginOf(r).Reader.Patch(obj, action)
	if err != nil {
		u.refuse(w, r, err)
		return
	}
	u.show(w, r, http.StatusOK, "confirm", pageOf{Title: string(action) + " " + obj.Namespace + "/" + obj.Name, Content: confirmed{
		Object: obj, Action: action, Patch: patch, Needs: action == Suspend,
		Path: u.base + at(obj.Kind.Group, obj.Kind.Kind, obj.Namespace, obj.Name),
	}})
}

// act does what was confirmed, to the object that was shown.
func (u *UI) act(w http.ResponseWriter, r *http.Request) {
	version, reason := r.PostFormValue("version"), r.PostFormValue("reason")
	if len(reason) > maxReason {
		u.fail(w, r, http.StatusBadRequest, "The reason is too long.")
		return
	}
	obj, ok := u.read(w, r)
	if !ok {
		return
	}
	if obj.Version != version {
		u.fail(w, r, http.StatusConflict, "It has changed since it was shown. Nothing was done; look at it again.")
		return
	}
	action, ok := u.action(w, r, obj)
	if !ok {
		return
	}
	if err := loginOf(r).Reader.Act(r.Context(), obj, action, reason); err != nil {
		u.refuse(w, r, err)
		return
	}
	http.Redirect(w, r, u.base+at(obj.Kind.Group, obj.Kind.Kind, obj.Namespace, obj.Name), http.StatusSeeOther)
}
