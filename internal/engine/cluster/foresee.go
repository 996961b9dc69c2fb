package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"sluice.dev/sluice/internal/transport"
)

// ErrUnforeseen says that what the API server would answer cannot be told from what it lets be read.
var ErrUnforeseen = errors.New("it cannot be foreseen")

// foresight is what a client that only reads has read.
type foresight struct {
	schemas *schemas

	mu   sync.Mutex
	seen map[Ref]func() (*unstructured.Unstructured, error)
}

// Foresee is the client for whoever wants to know what the API server would answer, and may only read: nothing that it
// writes is sent. It merges what is applied with what is there, by the schema that the API server publishes, and by its
// code. It knows nothing of defaults, of admission, of fields that cannot change, nor whether anybody has the right;
// ErrUnforeseen says what it cannot tell at all. An object is read once, so that all its answers are of one moment.
func (c *Client) Foresee() *Client {
	reading := *c
	reading.foresight = &foresight{
		schemas: newSchemas(c.mapper.kinds.OpenAPIV3()), seen: map[Ref]func() (*unstructured.Unstructured, error){},
	}
	return &reading
}

// look reads an object, once.
func (f *foresight) look(ref Ref, read func() (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	ref.UID = ""
	f.mu.Lock()
	once := f.seen[ref]
	if once == nil {
		once = sync.OnceValues(read)
		f.seen[ref] = once
	}
	f.mu.Unlock()
	found, err := once()
	if err != nil {
		return nil, err
	}
	return found.DeepCopy(), nil
}

// foreseeApply is what an apply would be answered.
func (c *Client) foreseeApply(ctx context.Context, ref Ref, object *unstructured.Unstructured, options ApplyOptions) (Applied, error) {
	status := http.StatusOK
	only := Version{UID: object.GetUID(), ResourceVersion: object.GetResourceVersion()}
	live, err := c.Get(ctx, ref)
	switch {
	case errors.Is(err, ErrNotFound) && only.UID != "":
		return Applied{}, c.answer(ErrChanged, "apply", ref, "it is not there", nil)
	case errors.Is(err, ErrNotFound):
		status = http.StatusCreated
		live = &unstructured.Unstructured{}
		live.SetGroupVersionKind(ref.GVK)
	case err != nil:
		return Applied{}, err
	}
	made, err := c.merged(ref, live, object, options)
	if err != nil {
		return Applied{}, err
	}
	if status == http.StatusOK && !only.isOf(live) {
		return Applied{}, c.answer(ErrChanged, "apply", ref, "it is another object of that name, or another version of it", nil)
	}
	answer, err := metadataOf(made)
	if err != nil {
		return Applied{}, c.answer(ErrUnforeseen, "apply", ref, transport.SafeError(err).Error(), nil)
	}
	done := applied(answer, status, object, options.Manager)
	done.Rehearsed = made
	return done, nil
}

// merged is what the object would be.
func (c *Client) merged(ref Ref, live, object *unstructured.Unstructured, options ApplyOptions) (*unstructured.Unstructured, error) {
	for _, entry := range live.GetManagedFields() {
		if entry.APIVersion != ref.GVK.GroupVersion().String() {
			return nil, c.answer(ErrUnforeseen, "apply", ref, transport.Printable(entry.Manager+" has set fields in "+entry.APIVersion+", which only the API server converts"), nil)
		}
	}
	mapping, err := c.mapping("apply", ref)
	if err != nil {
		return nil, err
	}
	known, err := c.foresight.schemas.of(ref.GVK.GroupVersion())
	if err != nil {
		return nil, c.answer(ErrUnforeseen, "apply", ref, transport.SafeError(err).Error(), nil)
	}
	// It is read as it would be sent: a number without decimals is a whole one then.
	wanted := &unstructured.Unstructured{}
	sent, err := object.MarshalJSON()
	if err == nil {
		err = wanted.UnmarshalJSON(sent)
	}
	if err != nil {
		return nil, c.invalid("apply", ref, transport.SafeError(err).Error())
	}
	wanted.SetUID("")
	wanted.SetResourceVersion("")
	if known.hasStatus(mapping) {
		delete(wanted.Object, "status")
	}
	made, err := known.merge(live, wanted, options.Manager, options.Force)
	switch {
	case apierrors.IsConflict(err):
		return nil, c.explain("apply", ref, err)
	case err != nil && misfit.MatchString(err.Error()):
		return nil, c.answer(ErrInvalid, "apply", ref, transport.Printable(discreet(ref, err.Error())), nil)
	case err != nil:
		return nil, c.answer(ErrUnforeseen, "apply", ref, transport.Printable(discreet(ref, err.Error())), nil)
	}
	encode(made)
	tidy(made, live)
	return made, nil
}

// tidy writes an object of the API server's own kinds as its code writes it: quantities in one form, and nothing for what is
// null, or empty where that is the same. What is as it was stays so, for other versions may write it in another way. An object
// with a field that this version does not know stays as it is.
func tidy(made, live *unstructured.Unstructured) {
	object, err := scheme.Scheme.New(made.GroupVersionKind())
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(made.Object, object, true) != nil {
		return
	}
	if tidied, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object); err == nil {
		made.Object, _ = settled(made.Object, tidied, live.Object).(map[string]any)
	}
}

// settled is the value in its tidied form, but for what is as it was.
func settled(value, tidied, was any) any {
	if reflect.DeepEqual(value, was) {
		return value
	}
	fields, _ := value.(map[string]any)
	made, isMap := tidied.(map[string]any)
	if !isMap {
		return tidied
	}
	before, _ := was.(map[string]any)
	for name, field := range fields {
		old, had := before[name]
		switch now, stays := made[name]; {
		case stays:
			made[name] = settled(field, now, old)
		case had && reflect.DeepEqual(field, old):
			made[name] = field
		}
	}
	return made
}

// encode puts what a Secret has as text where the API server puts it.
func encode(object *unstructured.Unstructured) {
	if object.GroupVersionKind() != corev1.SchemeGroupVersion.WithKind("Secret") {
		return
	}
	texts, _, _ := unstructured.NestedStringMap(object.Object, "stringData")
	data, _, _ := unstructured.NestedMap(object.Object, "data")
	if data == nil {
		data = map[string]any{}
	}
	for name, text := range texts {
		data[name] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	if delete(object.Object, "stringData"); len(data) > 0 {
		object.Object["data"] = data
	}
}

// foreseeCreate is what a create would be answered.
func (c *Client) foreseeCreate(ctx context.Context, ref Ref) (Applied, error) {
	_, err := c.Get(ctx, ref)
	switch {
	case errors.Is(err, ErrNotFound):
		return Applied{Created: true, Made: true}, nil
	case err != nil:
		return Applied{}, err
	}
	return Applied{}, c.answer(ErrExists, "create", ref, "it exists already", nil)
}

// foreseeChange is what a change of the one version would be answered, but for the change.
func (c *Client) foreseeChange(ctx context.Context, verb string, ref Ref, only Version) (*metav1.PartialObjectMetadata, error) {
	live, err := c.Metadata(ctx, ref)
	if err != nil {
		return nil, err
	}
	if !only.isOf(live) {
		return nil, c.answer(ErrChanged, verb, ref, "it is another object of that name, or another version of it", nil)
	}
	return live, nil
}

// isOf says that the object is the one, in the version.
func (v Version) isOf(object metav1.Object) bool {
	return (v.UID == "" || v.UID == object.GetUID()) && (v.ResourceVersion == "" || v.ResourceVersion == object.GetResourceVersion())
}

func metadataOf(object *unstructured.Unstructured) (*metav1.PartialObjectMetadata, error) {
	answer := &metav1.PartialObjectMetadata{}
	return answer, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, answer)
}
