// Package plan says what installing a release would do, for somebody who asks with their own rights: by the engine's own code, on
// the bytes that the controllers serve. Nothing is written, and no value of a Secret is told.
// It does not know how a release is chosen, nor how a plan is shown.
package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/catalog/published"
	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/engine/build"
	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/internal/engine/fetch"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/transport"
)

// Planner makes plans with the rights of one person.
type Planner struct {
	// API is where the installation, its Inventory and its release are read.
	API client.Client
	// Core is how what a Service serves is read.
	Core typedcorev1.CoreV1Interface
	// Config is how the API server is reached.
	Config *rest.Config
	// Members lists the objects of an installation whose Inventory may not be read.
	Members func(context.Context) ([]modulesv1.Member, error)
	// Room is asked before an object is kept, as build.Options has it.
	Room func(ctx context.Context, object []byte) error
}

// Request is what to plan.
type Request struct {
	// Installation is it as its spec is to be.
	Installation *modulesv1.ModuleInstallation
	// Namespace is where the release was chosen from, Channel the channel it was chosen by, or "".
	Namespace, Channel string
	Chosen             catalog.Release
	// Artifact is a file with the content of the release; "" has it read from what the controllers serve.
	Artifact string
	// Evidence is what is asked of the API server: with EvidenceServer dry runs of the engine's own requests, with EvidenceRead
	// what is there.
	Evidence engine.Evidence
	// As is as whom objects are looked at: nobody else than the person, or a ServiceAccount.
	As cluster.Identity
}

// Plan is what would become of an installation's objects.
type Plan struct {
	Release modulesv1.Release
	// Digest is the controller's for the same; "" where the Inventory may not be read.
	Digest   string
	Objects  []Object
	Blockers []Blocker
	// Unchanged is how many objects stay as they are.
	Unchanged int
}

// Object is what would become of one object.
type Object struct {
	Action    engine.Action `json:"action"`
	Group     string        `json:"group,omitempty"`
	Kind      string        `json:"kind"`
	Namespace string        `json:"namespace,omitempty"`
	Name      string        `json:"name"`
	// Fields are those that would change, of objects that can be compared; Uncompared says why one cannot.
	Fields     []Field `json:"fields"`
	Uncompared string  `json:"uncompared,omitempty"`
	// Taken are the fields that others have set, and that would be taken over.
	Taken    []Taken         `json:"taken"`
	Reason   string          `json:"reason,omitempty"`
	Blocked  string          `json:"blocked,omitempty"`
	Evidence engine.Evidence `json:"evidence"`
	// Before and After are the object as it is and as it would be, where both are known, without what is secret and what every write
	// changes. One that is made has no Before.
	Before *unstructured.Unstructured `json:"-"`
	After  *unstructured.Unstructured `json:"-"`
}

// Taken is a field that is taken over, and from whom.
type Taken struct {
	Path    string `json:"path"`
	Manager string `json:"manager"`
}

// Blocker is why the engine would not come to the end.
type Blocker struct {
	Stage   string `json:"stage,omitempty"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Make plans. An error says that there is no answer; it may hold a failure of the engine.
func (p *Planner) Make(ctx context.Context, asked Request) (Plan, error) {
	d, err := p.desk(ctx, asked)
	if err != nil {
		return Plan{}, err
	}
	defer d.close()
	preview, err := d.engine.Preview(ctx, d.in, asked.Evidence)
	if err != nil {
		return Plan{}, d.failed(ctx, err)
	}
	told := Plan{Release: d.in.Target.Release}
	if !d.records.unread {
		told.Digest = preview.Plan.Digest
	}
	var applied []*unstructured.Unstructured
	for i := range preview.Rows {
		if obj := preview.Rows[i].Object; obj != nil {
			applied = append(applied, obj)
		}
	}
	made, err := d.derived(ctx, applied)
	if err != nil {
		return Plan{}, d.failed(ctx, err)
	}
	hidden := newMask(d.values(), preview.Rows, made)
	for _, row := range preview.Rows {
		if one, changes := object(ctx, d.person, row, &hidden); changes {
			told.Objects = append(told.Objects, one)
		} else {
			told.Unchanged++
		}
	}
	for _, one := range preview.Blockers {
		message := hidden.text(one.Message)
		if one.Stage == engine.StageBuild {
			message = d.told(ctx, one.Message)
		}
		told.Blockers = append(told.Blockers, Blocker{string(one.Stage), one.Reason, message})
	}
	return told, d.full
}

// desk is what one request is worked on with.
type desk struct {
	engine  *engine.Engine
	in      engine.Installation
	person  *cluster.Client
	records *records
	content *Content
	// secrets are the variables that come from Secrets, with their values.
	secrets map[string]string
	// full is why there was no room for an object, which is nothing that is wrong with the release.
	full  error
	close func()
}

// values are those that are secret.
func (d *desk) values() []string { return slices.Collect(maps.Values(d.secrets)) }

func (p *Planner) desk(ctx context.Context, asked Request) (*desk, error) {
	connector, err := cluster.NewConnector(p.Config, cluster.Options{})
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	d := &desk{content: &Content{Core: p.Core, File: asked.Artifact}, records: &records{reader: p.API, members: p.Members, installation: asked.Installation}}
	if d.person, err = connector.As(asked.As); err != nil {
		return nil, fmt.Errorf("work as the ServiceAccount: %w", err)
	}
	if d.in, d.secrets, err = p.installation(ctx, asked, d.person); err != nil {
		return nil, err
	}
	connections := transport.New(transport.Options{})
	cache := fetch.New(connections, fetch.Options{Get: d.content.Get})
	d.close = func() {
		cache.Close()
		connections.Close()
	}
	room := func(ctx context.Context, object []byte) error {
		if p.Room != nil && d.full == nil {
			d.full = p.Room(ctx, object)
		}
		return d.full
	}
	if d.engine, err = engine.NewForPreviews(engine.Parts{
		Connector: connector, Cache: cache, Builder: build.New(build.Options{Room: room}), Records: d.records,
	}, engine.Options{}); err != nil {
		d.close()
		return nil, fmt.Errorf("make the engine: %w", err)
	}
	return d, nil
}

// failed is why there is no answer: that there is no room, what the API server said of the content, or else the engine's own account.
// What is wrong with an object may quote what was substituted in it.
func (d *desk) failed(ctx context.Context, err error) error {
	if staged, ok := errors.AsType[*failure.StageError](err); ok && staged.Stage == engine.StageBuild && ctx.Err() == nil {
		found := failure.Of(err)
		err = &failure.Error{Disposition: found.Disposition, Reason: found.Reason, Err: errors.New(d.told(ctx, err.Error()))}
	}
	return cmp.Or(d.full, d.content.Refused(), err)
}

// installation is what the engine has to know, and the values that come from Secrets.
func (p *Planner) installation(ctx context.Context, asked Request, person *cluster.Client) (in engine.Installation, secrets map[string]string, err error) {
	obj := asked.Installation
	template, release, err := published.Release(ctx, p.API, asked.Namespace, asked.Chosen)
	if err != nil {
		return in, nil, err //nolint:wrapcheck // It says what was read.
	}
	release.Channel = asked.Channel
	artifact, err := published.Artifact(ctx, p.API, &release)
	if err != nil {
		return in, nil, err //nolint:wrapcheck // It says what was read.
	}
	release.Digest, release.Revision = artifact.Digest, artifact.Revision
	target := &engine.Target{Release: release, Path: release.Path, Artifact: fetch.Artifact{
		URL: artifact.URL, Digest: artifact.Digest, Revision: artifact.Revision, Stored: artifact.LastUpdateTime.UTC(),
	}}
	if artifact.Size != nil {
		target.Artifact.Size = *artifact.Size
	}
	if err := target.Describe(template); err != nil {
		return in, nil, err //nolint:wrapcheck // It is the engine's own account.
	}
	in = engine.Installation{
		Name: obj.Name, Namespace: obj.Namespace, UID: string(obj.UID), Spec: obj.Spec, Identity: asked.As, Target: target,
	}
	if len(obj.Spec.DependsOn) > 0 {
		// It was decoded from JSON, so that it can be encoded again.
		fields, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		in.Self = &unstructured.Unstructured{Object: fields}
		in.Self.SetGroupVersionKind(modulesv1.GroupVersion.WithKind(modulesv1.ModuleInstallationKind))
	}
	if obj.Spec.Config == nil {
		return in, nil, nil
	}
	in.Variables = obj.Spec.Config.Substitute
	if len(obj.Spec.Config.SubstituteFrom) > 0 {
		read, err := engine.ReadVariables(ctx, person, obj.Namespace, obj.Spec.Config)
		if err != nil {
			return in, nil, err //nolint:wrapcheck // It is the engine's own account.
		}
		in.Variables, secrets = read.Values, map[string]string{}
		for name := range read.Secret {
			secrets[name] = read.Values[name]
		}
	}
	return in, secrets, nil
}

// object is what is told of a row; changes is false for what stays as it is.
func object(ctx context.Context, person *cluster.Client, row engine.Row, hidden *mask) (told Object, changes bool) {
	told = Object{
		Action: row.Action, Group: hidden.called(row.Ref.GVK.Group), Kind: hidden.called(row.Ref.GVK.Kind),
		Namespace: hidden.called(row.Ref.Namespace), Name: hidden.called(row.Ref.Name),
		Evidence: row.Evidence, Reason: hidden.text(row.Reason), Blocked: hidden.text(row.Blocked),
	}
	for _, field := range row.Taken {
		told.Taken = append(told.Taken, Taken{hidden.name(pathOf(field.Path)), field.Manager})
	}
	switch row.Action {
	case engine.ActionKeep:
		return told, told.Reason != "" || told.Blocked != ""
	case engine.ActionChange, engine.ActionAdopt, engine.ActionReplace:
	case engine.ActionCreate:
		told.After = shown(hidden.object(cmp.Or(row.After, row.Object)))
		return told, true
	case engine.ActionHandOver, engine.ActionRemove, engine.ActionLetGo:
		return told, true
	}
	if row.After == nil {
		told.Uncompared = "neither was the API server asked what it would become, nor could it be merged"
		return told, true
	}
	// The answer to a dry run is the live object with the changes, which whoever may patch may not be allowed to read.
	before, err := person.Get(ctx, row.Ref)
	if err != nil {
		told.Uncompared = "it could not be read: " + hidden.text(failure.Of(err).Error())
		return told, true
	}
	told.Before, told.After = shown(hidden.object(before)), shown(hidden.object(row.After))
	told.Fields = hidden.compare(told.Before, told.After, listsOf(before, row.After))
	return told, len(told.Fields) > 0 || row.Action != engine.ActionChange
}
