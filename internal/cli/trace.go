package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/view"
)

// tracing is how an object came to be: what put it there, what that was made from, and so on to what somebody wrote.
type tracing struct {
	Object ref         `json:"object"`
	Steps  []traceStep `json:"steps"`
	Field  *ownedField `json:"field,omitempty"`
}

// traceStep is an object on the way, or the address that the last one reads.
type traceStep struct {
	Object  *ref       `json:"object,omitempty"`
	Address string     `json:"address,omitempty"`
	State   view.State `json:"state,omitempty"`
	Note    string     `json:"note,omitempty"`
}

// tracer is one call of the command.
type tracer struct {
	*session

	told    tracing
	lacking []error
}

func traceCommand(b *base) *cobra.Command {
	field := ""
	command := &cobra.Command{
		Use:   "trace KIND NAME | KIND/NAME",
		Short: "Show which installation, release and source put an object of any kind here, and who owns a field of it",
		Example: `  sluice trace deployment/redis -n team-a
  sluice trace deploy redis --field spec.replicas
  sluice trace cm/settings --field 'data[app.conf]'`,
	}
	shown := bindAnswers(command)
	command.Flags().StringVar(&field, "field", "", "Say who owns this field, since when, and whether the release sets it: spec.replicas, spec.template.spec.containers[name=app].image, metadata.annotations[a.b/c].")
	return b.on(command, func(ctx context.Context, args []string) error {
		path, err := parseField(field)
		if err != nil {
			return err
		}
		gvk, name, err := b.anyOne(args)
		if err != nil {
			return err
		}
		t := &tracer{session: b.session}
		obj, err := t.read(ctx, gvk, b.namespace, name)
		if err != nil {
			return err
		}
		t.told.Object = refOf(obj)
		t.object(ctx, obj)
		if field != "" {
			t.told.Field = ownersOf(obj, field, path)
		}
		err = shown.show(b.Out, "Trace", t.told, t.told.print)
		return errors.Join(append([]error{err}, t.lacking...)...)
	})
}

// anyOne reads the arguments of a command that is about one object of any kind that the API server has.
func (b *base) anyOne(args []string) (schema.GroupVersionKind, string, error) {
	if len(args) == 1 {
		args = strings.SplitN(args[0], "/", 2)
	}
	if len(args) != 2 || args[0] == "" || args[1] == "" {
		return schema.GroupVersionKind{}, "", usage("one object has to be named", "as KIND/NAME, or KIND NAME")
	}
	if k, ours := kindOf(args[0]); ours {
		return k.GroupVersionKind, args[1], nil
	}
	versioned, resource := schema.ParseResourceArg(strings.ToLower(args[0]))
	asked := resource.WithVersion("")
	if versioned != nil {
		if gvk, err := b.RESTMapper().KindFor(*versioned); err == nil {
			return gvk, args[1], nil
		}
	}
	gvk, err := b.RESTMapper().KindFor(asked)
	if meta.IsNoMatchError(err) {
		return gvk, "", &CommandError{Code: ExitUnanswered, What: "find the kind " + args[0], Why: "the API server serves none of that name"}
	}
	if err != nil {
		return gvk, "", explain("find the kind "+args[0], err, "view")
	}
	return gvk, args[1], nil
}

// read gets an object; of a Secret no more than its metadata.
func (t *tracer) read(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	mapping, err := t.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, explain("find the kind "+gvk.Kind, err, "view")
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	}
	obj, key := &unstructured.Unstructured{}, client.ObjectKey{Namespace: namespace, Name: name}
	obj.SetGroupVersionKind(gvk)
	if gvk == corev1.SchemeGroupVersion.WithKind(secretKind) {
		known := &metav1.PartialObjectMetadata{}
		known.SetGroupVersionKind(gvk)
		if err = t.Get(ctx, key, known); err == nil {
			known.SetGroupVersionKind(gvk)
			obj.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(known)
		}
	} else {
		err = t.Get(ctx, key, obj)
	}
	if err != nil {
		return nil, explain("get "+ref{gvk.Kind, namespace, name}.String(), err, reads(t.RESTMapper(), gvk))
	}
	return obj, nil
}

const secretKind = "Secret"

func (t *tracer) step(obj *unstructured.Unstructured, note string) {
	t.told.Steps = append(t.told.Steps, traceStep{Object: new(refOf(obj)), Note: note})
}

// object goes from an object to what put it there.
func (t *tracer) object(ctx context.Context, obj *unstructured.Unstructured) {
	if k, ours := kindOf(obj.GetKind()); ours && k.Group == obj.GroupVersionKind().Group && obj.GetLabels()[engine.Label] == "" {
		t.ours(ctx, k, obj)
		return
	}
	if owner := metav1.GetControllerOf(obj); owner != nil && len(t.told.Steps) < maxOwners {
		t.step(obj, "owned by "+owner.Kind+" "+owner.Name)
		above, err := t.read(ctx, schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind), obj.GetNamespace(), owner.Name)
		if err != nil {
			t.lacking = append(t.lacking, err)
			return
		}
		t.object(ctx, above)
		return
	}
	labels := obj.GetLabels()
	switch {
	case labels[engine.Label] != "":
		t.member(ctx, obj)
	case labels["kustomize.toolkit.fluxcd.io/name"] != "":
		t.flux(ctx, obj, "kustomize.toolkit.fluxcd.io", "Kustomization")
	case labels["helm.toolkit.fluxcd.io/name"] != "":
		t.flux(ctx, obj, "helm.toolkit.fluxcd.io", "HelmRelease")
	default:
		who := engine.ManagedBy(metadataOf(obj))
		if who != "" {
			who = ", but " + who
		}
		t.step(obj, "no installation has it"+who)
	}
}

// maxOwners is how many owners above each other are followed.
const maxOwners = 10

func metadataOf(obj *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Labels: obj.GetLabels(), Annotations: obj.GetAnnotations(), OwnerReferences: obj.GetOwnerReferences(), ManagedFields: obj.GetManagedFields(),
	}}
}

// member goes to the installation whose label the object has. Anybody who may edit an object can put a label on it, so the
// Inventory is asked too, where it may be read.
func (t *tracer) member(ctx context.Context, obj *unstructured.Unstructured) {
	k := kinds()[0]
	installation, err := t.installationOf(ctx, k, obj)
	if err != nil {
		t.lacking = append(t.lacking, err)
	}
	if installation == nil {
		t.step(obj, fmt.Sprintf("its label names an installation %s/%s that is not there", obj.GetLabels()[engine.NamespaceLabel], obj.GetLabels()[engine.InstallationLabel]))
		return
	}
	t.step(obj, t.recorded(ctx, obj, installation))
	t.ours(ctx, k, installation)
}

// installationOf is the installation that an object's labels name; nil if there is none, or it cannot be read. A long name is cut in
// the label.
func (t *tracer) installationOf(ctx context.Context, k kind, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	id, namespace, name := obj.GetLabels()[engine.Label], obj.GetLabels()[engine.NamespaceLabel], obj.GetLabels()[engine.InstallationLabel]
	if engine.InstallationID(name, namespace) == id {
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(k.GroupVersionKind)
		err := t.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, found)
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, explain("get "+ref{k.Kind, namespace, name}.String(), err, "sluice-view")
		}
		return found, nil
	}
	all, err := t.listAll(ctx, k, client.InNamespace(namespace))
	if err != nil {
		return nil, explain("list "+k.resource+" in namespace "+namespace, err, "sluice-view")
	}
	at := slices.IndexFunc(all, func(one unstructured.Unstructured) bool {
		return engine.InstallationID(one.GetName(), one.GetNamespace()) == id
	})
	if at < 0 {
		return nil, nil
	}
	return &all[at], nil
}

// recorded says whether the installation's Inventory lists the object.
func (t *tracer) recorded(ctx context.Context, obj, installation *unstructured.Unstructured) string {
	var inventory modulesv1.Inventory
	err := t.Get(ctx, client.ObjectKeyFromObject(installation), &inventory)
	switch {
	case apierrors.IsForbidden(err):
		return "by its label; the Inventory, which sluice-operate shows, may not be read"
	case apierrors.IsNotFound(err):
		return "by its label; the Inventory is not there"
	case err != nil:
		t.lacking = append(t.lacking, explain("read Inventory "+client.ObjectKeyFromObject(installation).String(), err, "sluice-operate"))
		return "by its label"
	}
	gvk := obj.GroupVersionKind()
	if slices.ContainsFunc(inventory.Data.Members, func(m modulesv1.Member) bool {
		return m.Group == gvk.Group && m.Kind == gvk.Kind && m.Namespace == obj.GetNamespace() && m.Name == obj.GetName() && (m.UID == "" || m.UID == string(obj.GetUID()))
	}) {
		return "label and Inventory agree"
	}
	return "by its label alone: the Inventory does not list it, so somebody else has put the label there"
}

// ours goes from one of our objects to all that it takes from.
func (t *tracer) ours(ctx context.Context, k kind, obj *unstructured.Unstructured) {
	start := newTarget(k, obj.GetNamespace(), obj.GetName())
	start.obj = obj
	r := newRoad(t.session, start)
	r.forgives = true
	if _, err := r.visit(ctx, start); err != nil {
		t.lacking = append(t.lacking, err)
	}
	t.lacking = append(t.lacking, r.lacking...)
	for _, layer := range slices.Backward(r.layers) {
		for _, at := range layer {
			node := nodeOf(at.kind, at.obj)
			note := strings.TrimPrefix(node.Note+verifiedBy(at.obj), ", ")
			t.told.Steps = append(t.told.Steps, traceStep{Object: new(refOf(at.obj)), State: node.State, Note: note})
			if address := addressOf(at); address != "" {
				t.told.Steps = append(t.told.Steps, traceStep{Address: address})
			}
			if from, rev := madeFrom(at.obj); from != "" {
				t.told.Steps = append(t.told.Steps, traceStep{Address: from, Note: rev + " (the artifact says so; nobody has verified it)"})
			}
		}
	}
}

// verifiedBy says whose signature a source has found.
func verifiedBy(obj *unstructured.Unstructured) string {
	found := meta.FindStatusCondition(view.Conditions(obj), sourcev1.SourceVerifiedCondition)
	if found == nil {
		return ""
	}
	return ", " + strings.ToLower(found.Type) + " " + string(found.Status) + ": " + found.Message
}

// madeFrom is what a module's artifact was made from, by its annotations as the OCI image specification has them.
func madeFrom(obj *unstructured.Unstructured) (address, revision string) {
	told, _, _ := unstructured.NestedStringMap(obj.Object, "status", "artifact", "metadata")
	return credential.CleanURL(told["org.opencontainers.image.source"]), told["org.opencontainers.image.revision"]
}

// flux goes to the object of Flux that applied this one, and from there to the source.
func (t *tracer) flux(ctx context.Context, obj *unstructured.Unstructured, group, kind string) {
	namespace, name := obj.GetLabels()[group+"/namespace"], obj.GetLabels()[group+"/name"]
	t.step(obj, "by its label")
	mapping, err := t.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: kind})
	if err != nil {
		t.lacking = append(t.lacking, explain("find the kind "+kind, err, "view"))
		return
	}
	applier, err := t.read(ctx, mapping.GroupVersionKind, namespace, name)
	if err != nil {
		t.lacking = append(t.lacking, err)
		return
	}
	fact := view.Of(applier)
	t.told.Steps = append(t.told.Steps, traceStep{Object: new(refOf(applier)), State: fact.State, Note: fact.Message})
	for _, o := range fluxOrigins(applier) {
		k, ours := kindOf(o.kind)
		if !ours {
			continue
		}
		source, err := t.in(cmp.Or(o.namespace, namespace)).named(ctx, k, o.name)
		if err != nil {
			t.lacking = append(t.lacking, err)
			continue
		}
		t.ours(ctx, k, source)
	}
}

// fluxOrigins are the sources of a Kustomization or a HelmRelease, whose chart may be an object of its own.
func fluxOrigins(applier *unstructured.Unstructured) []origin {
	if made, _, _ := unstructured.NestedString(applier.Object, "status", "helmChart"); made != "" {
		namespace, name, _ := strings.Cut(made, "/")
		return []origin{{sourcev1.HelmChartKind, namespace, name}}
	}
	return refs("", "spec.sourceRef", "spec.chartRef")(applier)
}

// print draws the way, one step a line, and the field.
func (d tracing) print(t table) error {
	to := &columns{out: t.out}
	for _, step := range d.Steps {
		name := step.Address
		if step.Object != nil {
			name = step.Object.String()
		}
		state := ""
		if step.State != "" {
			state = t.state(step.State)
		}
		t.row(to, slices.DeleteFunc([]string{name, state, step.Note}, func(cell string) bool { return cell == "" }))
	}
	if err := to.Flush(); err != nil {
		return err
	}
	if d.Field == nil {
		return nil
	}
	_, err := fmt.Fprintln(t.out, printable.Line(d.Field.text(t), maxProblem))
	return err //nolint:wrapcheck // unprinted tells a closed pipe apart.
}
