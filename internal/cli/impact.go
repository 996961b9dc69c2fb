package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/catalog/objects"
	"sluice.dev/sluice/internal/view"
)

// consequence is what becomes of an installation when a catalogue is edited.
type consequence string

const (
	// upgradesNow is another release that is installed at once.
	upgradesNow consequence = "UpgradesNow"
	// waitsForApproval is another release whose plan is to be approved.
	waitsForApproval consequence = "WaitsForApproval"
	// isHeld is another release that is not installed, for a reason.
	isHeld consequence = "Held"
	// losesRelease is one that no release is left for; what is installed stays.
	losesRelease consequence = "LosesRelease"
	// comesFree is one that was held, and is so no more.
	comesFree consequence = "ComesFree"
)

// impacted is whom an edited catalogue moves.
type impacted struct {
	Edits         []catalogueEdit `json:"edits"`
	Installations []impactedOne   `json:"installations"`
	// Follow is how many installations choose from what is edited, and Others how many do not.
	Follow int `json:"follow"`
	Others int `json:"others"`
	// Plans are of the first installations that get another release.
	Plans []planned `json:"plans,omitempty"`
}

// catalogueEdit is an object that the files add or edit.
type catalogueEdit struct {
	Object ref    `json:"object"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// impactedOne is an installation that is chosen for otherwise than before.
type impactedOne struct {
	Object      ref         `json:"object"`
	From        string      `json:"from,omitempty"`
	To          string      `json:"to,omitempty"`
	Consequence consequence `json:"consequence"`
	Reason      string      `json:"reason,omitempty"`
	Message     string      `json:"message,omitempty"`
}

// assessor is one call of impact.
type assessor struct {
	*planner

	before, after *catalogues
	memo          *catalog.Memo
	// modules are the names of those whose choice the files touch.
	modules map[string]bool
	told    impacted
	lacking []error
	plans   bool
}

func impactCommand(b *base) *cobra.Command {
	a := &assessor{planner: newPlanner(b), modules: map[string]bool{}}
	command := &cobra.Command{
		Use:   "impact -f FILE...",
		Short: "Show which installations move, wait or are held when a catalogue is edited",
		Example: `  sluice impact -f foo-regular.yaml
  sluice impact -f foo-regular.yaml --plan
  sluice impact -f catalogue/ -o json`,
		Args: cobra.NoArgs,
	}
	a.shown = bindAnswers(command)
	bindCatalogue(command.Flags(), &a.paths, &a.given)
	a.bindPlans(command, &a.plans, fmt.Sprintf("Show what would change, object by object, for the first %d installations that get another release.", maxPlans))
	return b.on(command, func(ctx context.Context, _ []string) error {
		if len(a.paths) == 0 {
			return usage("nothing is edited", "name files with templates and modules as they are to be with -f")
		}
		if err := unplannable(command); err != nil {
			return err
		}
		if err := a.assess(ctx); err != nil {
			return err
		}
		if a.plans {
			a.planAll(ctx)
		}
		err := a.shown.show(a.Out, "Impact", a.told, a.told.printAll)
		if err == nil && len(a.told.Installations) > 0 && len(a.lacking) == 0 {
			return &CommandError{Code: ExitNo}
		}
		return errors.Join(append([]error{err}, a.lacking...)...)
	})
}

// assess chooses for all installations, from the catalogue as it is and from the edited one.
func (a *assessor) assess(ctx context.Context) error {
	if err := a.readFiles(); err != nil {
		return err
	}
	if len(a.files.templates)+len(a.files.modules) == 0 {
		return usage("the files have neither a ModuleTemplate nor a Module")
	}
	all, err := a.everything(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	known, unread := a.namespaceLabels(ctx), map[string]error{}
	a.memo = catalog.NewMemo(now)
	a.before, a.after = newCatalogues(a.WithWatch, &manifests{}, now), newCatalogues(a.WithWatch, a.files, now)
	for _, c := range []*catalogues{a.before, a.after} {
		c.everything, c.labels, c.unread = all, known, unread
	}
	a.edits(ctx)
	return a.installations(ctx)
}

// everything lists what all namespaces offer, or what the session's and the system's do where more is not allowed.
func (a *assessor) everything(ctx context.Context) (map[string]*offered, error) {
	all := map[string]*offered{}
	in := func(namespace string) *offered {
		if all[namespace] == nil {
			all[namespace] = &offered{}
		}
		return all[namespace]
	}
	err := eachChunk(ctx, a.session, func() *modulesv1.ModuleTemplateList { return &modulesv1.ModuleTemplateList{} }, func(list *modulesv1.ModuleTemplateList, first bool) {
		if first {
			clear(all)
		}
		for i := range list.Items {
			list.Items[i].ManagedFields = nil
			in(list.Items[i].Namespace).templates = append(in(list.Items[i].Namespace).templates, list.Items[i])
		}
	})
	if err == nil {
		err = eachChunk(ctx, a.session, func() *modulesv1.ModuleList { return &modulesv1.ModuleList{} }, func(list *modulesv1.ModuleList, first bool) {
			for _, one := range all {
				if first {
					one.modules = nil
				}
			}
			for i := range list.Items {
				list.Items[i].ManagedFields = nil
				in(list.Items[i].Namespace).modules = append(in(list.Items[i].Namespace).modules, list.Items[i])
			}
		})
	}
	if err == nil {
		return all, nil
	}
	told := explain("list what all namespaces offer", err, catalogueRole)
	if told.general {
		return nil, told
	}
	// Each namespace is read for itself then, as far as it may be.
	return nil, nil
}

// namespaceLabels are those of all namespaces, by which modules admit installations; none where they may not be listed: then
// each is asked for.
func (a *assessor) namespaceLabels(ctx context.Context) map[string]labels.Set {
	known := map[string]labels.Set{}
	fresh := func() *metav1.PartialObjectMetadataList {
		return bareList(corev1.SchemeGroupVersion.WithKind("Namespace"))
	}
	_ = eachChunk(ctx, a.session, fresh, func(list *metav1.PartialObjectMetadataList, _ bool) {
		for i := range list.Items {
			known[list.Items[i].Name] = labels.Merge(list.Items[i].Labels, nil)
		}
	})
	return known
}

// edits notes what the files make of the catalogue, and which modules that touches.
func (a *assessor) edits(ctx context.Context) {
	live := map[string]modulesv1.ModuleTemplate{}
	for _, namespace := range a.edited() {
		there, err := a.before.offers(ctx, namespace)
		if err != nil {
			a.lacking = append(a.lacking, err)
			continue
		}
		for _, template := range there.templates {
			live[namespace+"/"+template.Name] = template
		}
	}
	state := func(r catalog.Release) string {
		if r.Claims() {
			return strings.TrimSpace(cmp.Or(r.Version, r.Stated) + " in channel " + r.Channel)
		}
		return cmp.Or(r.Version, r.Stated)
	}
	for i := range a.files.templates {
		template := &a.files.templates[i]
		edit := catalogueEdit{Object: ref{modulesv1.ModuleTemplateKind, template.Namespace, template.Name}}
		now := objects.ReleaseOf(template)
		a.modules[now.Module] = true
		if was, there := live[template.Namespace+"/"+template.Name]; there {
			before := objects.ReleaseOf(&was)
			a.modules[before.Module] = true
			edit.Before = state(before)
		}
		edit.After = state(now)
		a.told.Edits = append(a.told.Edits, edit)
	}
	for _, module := range a.files.modules {
		a.modules[module.Name] = true
		a.told.Edits = append(a.told.Edits, catalogueEdit{Object: ref{modulesv1.ModuleKind, module.Namespace, module.Name}})
	}
}

// edited are the namespaces whose catalogues the files edit.
func (a *assessor) edited() []string {
	var all []string
	for i := range a.files.templates {
		all = append(all, a.files.templates[i].Namespace)
	}
	for i := range a.files.modules {
		all = append(all, a.files.modules[i].Namespace)
	}
	return slices.Compact(slices.Sorted(slices.Values(all)))
}

// installations chooses for each, chunk by chunk, and keeps what comes out otherwise.
func (a *assessor) installations(ctx context.Context) error {
	lacking, err := a.eachInstallation(ctx, func() { a.told.Installations, a.told.Follow, a.told.Others = nil, 0, 0 },
		func(obj *modulesv1.ModuleInstallation) { a.one(ctx, obj) })
	if lacking != nil {
		a.lacking = append(a.lacking, lacking)
	}
	if err != nil {
		return err
	}
	slices.SortFunc(a.told.Installations, func(x, y impactedOne) int {
		return cmp.Or(cmp.Compare(x.Object.Namespace, y.Object.Namespace), cmp.Compare(x.Object.Name, y.Object.Name))
	})
	return nil
}

// eachInstallation has the installations of all namespaces taken, chunk by chunk, or those of the session's where more is not allowed: then
// lacking says so. The first chunk may come anew; begin is called before it.
func (s *session) eachInstallation(ctx context.Context, begin func(), take func(*modulesv1.ModuleInstallation)) (lacking, err error) {
	if err := s.installationsIn(ctx, begin, take); err != nil {
		told := explain("list the installations of all namespaces", err, "sluice-view")
		if told.general {
			return nil, told
		}
		if err := s.installationsIn(ctx, begin, take, client.InNamespace(s.namespace)); err != nil {
			return told, explain("list the installations of namespace "+s.namespace, err, "sluice-view")
		}
		told.Help = append(told.Help, "those of namespace "+s.namespace+" are shown")
		return told, nil
	}
	return nil, nil
}

// installationsIn has those taken that the options choose, chunk by chunk.
func (s *session) installationsIn(ctx context.Context, begin func(), take func(*modulesv1.ModuleInstallation), options ...client.ListOption) error {
	return eachChunk(ctx, s, func() *modulesv1.ModuleInstallationList { return &modulesv1.ModuleInstallationList{} },
		func(list *modulesv1.ModuleInstallationList, first bool) {
			if first {
				begin()
			}
			for i := range list.Items {
				take(&list.Items[i])
			}
		}, options...)
}

// one chooses for an installation.
func (a *assessor) one(ctx context.Context, obj *modulesv1.ModuleInstallation) {
	if !a.touches(obj) {
		a.told.Others++
		return
	}
	a.told.Follow++
	if obj.Undecodable != "" {
		a.lacking = append(a.lacking, &CommandError{
			Code: ExitUnanswered, What: "read " + ref{modulesv1.ModuleInstallationKind, obj.Namespace, obj.Name}.String(), Why: obj.Undecodable,
		})
		return
	}
	a.before.lacking, a.after.lacking = nil, nil // What is not known of one namespace says nothing of another.
	was, err := a.choose(ctx, a.before, obj)
	is := was
	if err == nil {
		is, err = a.choose(ctx, a.after, obj)
	}
	if err = cmp.Or(err, a.before.lacking, a.after.lacking); err != nil {
		if !slices.ContainsFunc(a.lacking, func(known error) bool { return known.Error() == err.Error() }) {
			a.lacking = append(a.lacking, err)
		}
		return
	}
	if told, moves := consequenceOf(was, is); moves {
		told.Object = ref{modulesv1.ModuleInstallationKind, obj.Namespace, obj.Name}
		if told.Consequence == upgradesNow && obj.Spec.Suspend {
			told.Consequence, told.Reason, told.Message = isHeld, string(view.Suspended), "it is suspended, and follows once it is resumed"
		} else if told.Consequence == upgradesNow && obj.Spec.GetManagement() == modulesv1.ManagementPaused {
			told.Consequence, told.Reason, told.Message = isHeld, modulesv1.PausedReason, "nothing is installed while spec.management is Paused"
		}
		if obj.Status.Current != nil {
			told.From = obj.Status.Current.Version
		}
		a.told.Installations = append(a.told.Installations, told)
	}
}

// touches says that the installation may choose from what is edited.
func (a *assessor) touches(obj *modulesv1.ModuleInstallation) bool {
	names := []string{obj.Spec.Module.Name}
	if found := obj.Status.Resolution; found != nil {
		names = append(names, found.Module)
	}
	if current := obj.Status.Current; current != nil {
		names = append(names, current.Module)
	}
	// An installation that nobody has looked at says what it is of by its template alone.
	return slices.ContainsFunc(names, func(name string) bool { return a.modules[name] }) ||
		obj.Spec.Module.TemplateRef != nil && slices.ContainsFunc(a.files.templates, func(t modulesv1.ModuleTemplate) bool { return t.Name == obj.Spec.Module.TemplateRef.Name })
}

func (a *assessor) choose(ctx context.Context, from *catalogues, obj *modulesv1.ModuleInstallation) (catalog.Decision, error) {
	request, installed := objects.Stated(obj)
	system := cmp.Or(a.given, systemOf(obj))
	if system == "" {
		var err error
		if system, err = a.fallback(ctx); err != nil {
			return catalog.Decision{}, err
		}
	}
	needed := both()
	if from.everything == nil {
		needed = needOf(obj.Namespace, request, installed)
	}
	index, err := from.index(ctx, obj.Namespace, system, needed)
	if err != nil {
		return catalog.Decision{}, err
	}
	return a.memo.Resolve(request, installed, index), nil
}

// consequenceOf compares two choices.
func consequenceOf(was, is catalog.Decision) (told impactedOne, moves bool) {
	target := func(d catalog.Decision) (chosen *catalog.Release, hold string) {
		if d.Hold != nil {
			hold = d.Hold.Reason
		}
		return cmp.Or(d.Chosen(), &catalog.Release{}), hold
	}
	before, heldBefore := target(was)
	after, heldAfter := target(is)
	if before.Template == "" && after.Template == "" {
		return told, false // There was none to lose.
	}
	if before.Template == after.Template && before.Version == after.Version && before.Digest == after.Digest && heldBefore == heldAfter {
		return told, false
	}
	told.To = cmp.Or(after.Version, after.Stated)
	if is.Hold != nil {
		told.Reason, told.Message = is.Hold.Reason, is.Hold.Message
	}
	switch {
	case is.Hold == nil && is.Changed:
		told.Consequence = upgradesNow
	case is.Hold == nil && heldBefore != "":
		told.Consequence = comesFree
	case is.Hold == nil:
		return told, false // The same content goes by another name.
	case is.Hold.Reason == modulesv1.AwaitingApprovalReason:
		told.Consequence = waitsForApproval
	case is.Hold.Candidate == nil:
		told.Consequence = losesRelease
	default:
		told.Consequence = isHeld
	}
	return told, true
}
