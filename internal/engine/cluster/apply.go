package cluster

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// ApplyOptions say how an object is applied.
type ApplyOptions struct {
	// Manager is the field manager, unique to the owner: under a shared one the API server lets owners overwrite each
	// other without a word.
	Manager string
	// Force takes over fields that other managers hold; otherwise they are a *ConflictError.
	Force bool
	// Only is the one life and version of the object that may be written; any other is ErrChanged, and so is none at
	// all where a UID is given. Zero means whatever is there.
	Only Version
}

// Version is an object in one of its versions. With a UID alone it is any version of that life of the name.
type Version struct {
	UID             types.UID
	ResourceVersion string
}

// Absent is the version that no object has: what is applied for it is created, or else not touched.
func Absent() Version { return Version{ResourceVersion: "1"} }

// Seen is what is worth keeping of an object as the API server holds it.
type Seen struct {
	UID             types.UID
	ResourceVersion string
	Generation      int64
	// Fingerprint is that of all installations' managers; see Fingerprint.
	Fingerprint string
	// Deleting says that the object is being deleted, and will go whatever is applied to it.
	Deleting bool
	// Kept says that somebody keeps the object from being deleted; see KeptBy.
	Kept bool
}

// See reads what is worth keeping of an object.
func See(object metav1.Object) Seen {
	return Seen{
		UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(), Generation: object.GetGeneration(),
		Fingerprint: Fingerprint(object, ManagerPrefix), Deleting: object.GetDeletionTimestamp() != nil, Kept: KeptBy(object) != "",
	}
}

// Version is the object's, as it was seen.
func (s Seen) Version() Version { return Version{UID: s.UID, ResourceVersion: s.ResourceVersion} }

// Applied is what the API server holds after an apply or a create.
type Applied struct {
	Seen

	// Created says that the object was not there before.
	Created bool
	// Made says that the object was created by an apply of the manager, now or before; see MadeBy.
	Made bool
	// Strays are the object's managers as they should be, where kubectl has put items into lists of the object: see
	// Reclaim. An apply after Manage removes these.
	Strays []Entry
	// Rehearsed is what the object would be after a dry run; nil for what is stored.
	Rehearsed *unstructured.Unstructured
}

// Apply applies the object in one call, with neither a read nor a dry run before it. An object of a kind that lives in
// namespaces has to name one, any other must not; see Namespaced. A uid in the object pins it to that life of the name.
func (c *Client) Apply(ctx context.Context, object *unstructured.Unstructured, options ApplyOptions) (Applied, error) {
	ref := refOf(object)
	segments, err := c.managed("apply", ref, options.Manager)
	if err != nil {
		return Applied{}, err
	}
	if c.foresight != nil {
		return c.foreseeApply(ctx, ref, pinned(object, options.Only), options)
	}
	request := c.write(c.rest.Patch(types.ApplyPatchType)).AbsPath(segments...).
		Param("fieldManager", options.Manager).Param("force", strconv.FormatBool(options.Force))
	body := pinned(object, options.Only).Object
	if c.dryRun {
		return c.rehearse(ctx, ref, request, body, object, options.Manager)
	}
	answer, status, err := c.send(ctx, "apply", ref, request, body)
	if err != nil {
		return Applied{}, err
	}
	return applied(answer, status, object, options.Manager), nil
}

// rehearse sends an apply of which nothing is stored, and reads what the whole object would be.
func (c *Client) rehearse(ctx context.Context, ref Ref, request *rest.Request, body any, object *unstructured.Unstructured, manager string) (Applied, error) {
	whole := &unstructured.Unstructured{}
	status, err := c.ask(ctx, "apply", ref, request.SetHeader("Accept", runtime.ContentTypeJSON), body, whole)
	if err != nil {
		return Applied{}, err
	}
	answer, err := metadataOf(whole)
	if err != nil {
		return Applied{}, c.explain("apply", ref, fmt.Errorf("read the answer: %w", err))
	}
	made := applied(answer, status, object, manager)
	made.Rehearsed = whole
	return made, nil
}

// applied is what an answer to an apply of the object says.
func applied(answer *metav1.PartialObjectMetadata, status int, object *unstructured.Unstructured, manager string) Applied {
	created := status == http.StatusCreated
	return Applied{
		Seen: See(answer), Created: created, Made: created || MadeBy(answer, manager),
		Strays: Reclaim(answer.ManagedFields, manager, object, ByKubectl),
	}
}

// Create makes the object in one call, and never touches one that is there already, which is ErrExists. It leaves no
// fingerprint: only what is applied has one.
func (c *Client) Create(ctx context.Context, object *unstructured.Unstructured, manager string) (Applied, error) {
	ref := refOf(object)
	segments, err := c.managed("create", ref, manager)
	if err != nil {
		return Applied{}, err
	}
	if c.foresight != nil {
		return c.foreseeCreate(ctx, ref)
	}
	request := c.write(c.rest.Post()).AbsPath(segments[:len(segments)-1]...).SetHeader("Content-Type", runtime.ContentTypeJSON).
		Param("fieldManager", manager)
	answer, _, err := c.send(ctx, "create", ref, request, object.Object)
	if err != nil {
		return Applied{}, err
	}
	return Applied{Seen: See(answer), Created: true, Made: true}, nil
}

// pinned is the object for one version only.
func pinned(object *unstructured.Unstructured, only Version) *unstructured.Unstructured {
	if only == (Version{}) {
		return object
	}
	copied := &unstructured.Unstructured{Object: maps.Clone(object.Object)}
	metadata, _ := copied.Object["metadata"].(map[string]any)
	copied.Object["metadata"] = maps.Clone(metadata)
	copied.SetUID(only.UID)
	copied.SetResourceVersion(only.ResourceVersion)
	return copied
}

// managed are the segments of an object that a manager writes.
func (c *Client) managed(verb string, ref Ref, manager string) ([]string, error) {
	if manager == "" {
		return nil, c.invalid(verb, ref, "no field manager is given")
	}
	return c.segments(verb, ref)
}
