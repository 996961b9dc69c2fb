package cli

import (
	"cmp"
	"fmt"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/catalog/objects"
)

// explanation is how a release was chosen for an installation.
type explanation struct {
	Object ref `json:"object"`
	// Runs is what is installed, and Wants what is to be.
	Runs  *chosenRelease `json:"runs,omitempty"`
	Wants wanting        `json:"wants"`
	// Waits is what the controller waits for beside the choice.
	Waits *reasoned     `json:"waits,omitempty"`
	Looks looking       `json:"looks"`
	Rules []ruling      `json:"rules"`
	About *aboutVersion `json:"about,omitempty"`
	// Notes say how the answer differs from what status says, and why.
	Notes []string `json:"notes"`
}

// chosenRelease is a release, and by what it was selected.
type chosenRelease struct {
	Version    string `json:"version,omitempty"`
	Template   string `json:"template,omitempty"`
	SelectedBy string `json:"selectedBy,omitempty"`
}

// reasoned is why something does not go on.
type reasoned struct {
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

func (r *reasoned) String() string {
	if r.Message == "" {
		return r.Reason
	}
	return r.Reason + ": " + r.Message
}

// wanting is what is to run, or what would if it were not held; no release where none was found.
type wanting struct {
	chosenRelease `json:",inline"`

	Changed bool      `json:"changed"`
	Hold    *reasoned `json:"hold,omitempty"`
}

// looking is where releases were looked for, and why there.
type looking struct {
	Module    string            `json:"module,omitempty"`
	Catalog   modulesv1.Catalog `json:"catalog,omitempty"`
	Namespace string            `json:"namespace,omitempty"`
	Why       string            `json:"why,omitempty"`
}

// ruling is what a rule left of the releases.
type ruling struct {
	Rule    string    `json:"rule"`
	Left    int       `json:"left"`
	Note    string    `json:"note,omitempty"`
	LeftOut []leftOut `json:"leftOut"`
}

// leftOut is a release that a rule left out.
type leftOut struct {
	Version  string `json:"version,omitempty"`
	Template string `json:"template"`
	Why      string `json:"why"`
}

// stated is what status says was chosen: for whoever may not read the catalogue.
func stated(obj *modulesv1.ModuleInstallation) explanation {
	status := &obj.Status
	told := explanation{Object: ref{modulesv1.ModuleInstallationKind, obj.Namespace, obj.Name}, Runs: running(status)}
	if desired := status.Desired; desired != nil {
		told.Wants = wanting{chosenRelease: chosenRelease{Version: desired.Version, Template: desired.Template}, Changed: status.Pending == nil && !objects.SameRelease(status.Current, desired)}
	}
	if pending := status.Pending; pending != nil {
		told.Wants.Hold = &reasoned{pending.Reason, pending.Message}
	}
	if found := status.Resolution; found != nil {
		told.Wants.SelectedBy = found.SelectedBy
		told.Looks = looking{Module: found.Module, Catalog: found.Catalog, Namespace: found.Namespace, Why: "as status says"}
		for _, step := range found.Trace {
			told.Rules = append(told.Rules, ruling{Rule: step.Rule, Left: int(step.Kept), Note: step.Detail})
		}
	}
	return told
}

// running is what is installed, and by what it was selected where that is still said.
func running(status *modulesv1.ModuleInstallationStatus) *chosenRelease {
	current := status.Current
	if current == nil {
		return nil
	}
	runs := &chosenRelease{Version: current.Version, Template: current.Template}
	switch {
	case current.Channel != "":
		runs.SelectedBy = catalog.Selection{By: catalog.ByChannel, Value: current.Channel}.String()
	case status.Desired != nil && status.Resolution != nil && objects.SameRelease(current, status.Desired):
		runs.SelectedBy = status.Resolution.SelectedBy
	}
	return runs
}

// explained is what the decision says.
func explained(obj *modulesv1.ModuleInstallation, d catalog.Decision, why string) explanation {
	told := explanation{Object: ref{modulesv1.ModuleInstallationKind, obj.Namespace, obj.Name}, Runs: running(&obj.Status)}
	told.Looks = looking{Module: d.Module, Catalog: d.Catalog, Namespace: d.Namespace, Why: why}
	told.Wants.Changed = d.Changed
	if d.Hold != nil {
		told.Wants.Hold = &reasoned{d.Hold.Reason, d.Hold.Message}
	}
	if chosen := d.Chosen(); chosen != nil {
		told.Wants.Version, told.Wants.Template = chosen.Version, chosen.Template
	}
	told.Wants.SelectedBy = d.SelectedBy.String()
	for _, rule := range d.Trace {
		made := ruling{Rule: rule.Name, Left: rule.Kept, Note: rule.Note}
		for _, dropped := range rule.Dropped {
			made.LeftOut = append(made.LeftOut, leftOut{dropped.Version, dropped.Template, dropped.Why})
		}
		told.Rules = append(told.Rules, made)
	}
	if pending := obj.Status.Pending; pending != nil && comesAfter(pending.Reason, d) {
		told.Waits = &reasoned{pending.Reason, pending.Message}
	}
	return told
}

// comesAfter says whether a release that was chosen may wait for the reason all the same.
func comesAfter(reason string, d catalog.Decision) bool {
	switch reason {
	case modulesv1.ArtifactNotReadyReason, modulesv1.PausedReason, modulesv1.DependencyNotReadyReason:
		return d.Hold == nil
	case modulesv1.AwaitingApprovalReason:
		// An edit of the spec would remove objects of the installed release.
		return d.Hold == nil && !d.Changed
	default:
		return false
	}
}

// notes say what else has a say, and where status says something else; it knows nothing of files.
func notes(obj *modulesv1.ModuleInstallation, d catalog.Decision, files bool) []string {
	var said []string
	status := &obj.Status
	seen := status.ObservedGeneration == obj.Generation
	switch {
	case !obj.DeletionTimestamp.IsZero():
		return []string{"It is being deleted: nothing is chosen for it any more."}
	case obj.UnreadableStatus:
		return []string{"Its status cannot be read, so that nobody knows here what is installed."}
	case obj.Spec.Suspend:
		said = append(said, "It is suspended: nothing is chosen for it before that is taken back.")
	case status.ObservedGeneration <= 0 && status.Resolution == nil:
		return []string{"The controller has not looked at it yet: this is what it would choose."}
	case !seen:
		said = append(said, "The controller has not looked at its last edit yet.")
	}
	if differs := difference(status, d); differs != "" {
		why := "the controller has not looked at what has changed since, or sees what you may not"
		switch {
		case files:
			why = "it knows nothing of the files"
		case !seen:
			why = "that was before the edit"
		}
		said = append(said, fmt.Sprintf("Status says otherwise, %s: %s.", differs, why))
	}
	return said
}

// difference is what status says of the choice, if that is another one.
func difference(status *modulesv1.ModuleInstallationStatus, d catalog.Decision) string {
	is, reason := cmp.Or(d.Chosen(), &catalog.Release{}), ""
	if d.Hold != nil {
		reason = d.Hold.Reason
	}
	desired := cmp.Or(status.Desired, &modulesv1.Release{})
	waits := ""
	if status.Pending != nil && !comesAfter(status.Pending.Reason, d) {
		waits = status.Pending.Reason
	}
	found := cmp.Or(status.Resolution, &modulesv1.Resolution{})
	switch {
	case desired.Template != is.Template || desired.Version != is.Version:
		if desired.Template == "" {
			return "that no release is selected"
		}
		return fmt.Sprintf("that %s (template %s) is selected", cmp.Or(desired.Version, "a release without a version"), desired.Template)
	case waits != reason:
		return "that it is held by " + cmp.Or(waits, "nothing")
	case d.Namespace != "" && found.Namespace != d.Namespace:
		return "that the release is looked for in namespace " + cmp.Or(found.Namespace, "none")
	}
	return ""
}
