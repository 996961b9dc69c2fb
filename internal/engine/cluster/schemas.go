package cluster

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi/cached"
	"k8s.io/client-go/openapi3"
)

// schemas are those that the API server publishes, as OpenAPI v3. Each version of a group is read once, when it is needed.
type schemas struct {
	root openapi3.Root

	mu    sync.Mutex
	known map[schema.GroupVersion]func() (published, error)
}

func newSchemas(client openapi.Client) *schemas {
	return &schemas{root: openapi3.NewRoot(cached.NewClient(client)), known: map[schema.GroupVersion]func() (published, error){}}
}

// published is what is known of the kinds of a version of a group.
type published struct {
	types managedfields.TypeConverter
	// paths are those of all that can be asked for.
	paths []string
}

func (s *schemas) of(version schema.GroupVersion) (published, error) {
	s.mu.Lock()
	read := s.known[version]
	if read == nil {
		read = sync.OnceValues(func() (published, error) { return s.read(version) })
		s.known[version] = read
	}
	s.mu.Unlock()
	return read()
}

func (s *schemas) read(version schema.GroupVersion) (published, error) {
	told, err := s.root.GVSpec(version)
	if err != nil {
		return published{}, fmt.Errorf("read the schema of %s: %w", version, err)
	}
	if told.Components == nil {
		return published{}, fmt.Errorf("read the schema of %s: it is empty", version)
	}
	found := published{}
	if told.Paths != nil {
		for path := range told.Paths.Paths {
			found.paths = append(found.paths, path)
		}
	}
	if found.types, err = managedfields.NewTypeConverter(told.Components.Schemas, false); err != nil {
		return published{}, fmt.Errorf("read the schema of %s: %w", version, err)
	}
	return found, nil
}

// hasStatus says that the status of the kind is written by itself: what an apply has of it is left out then.
func (p published) hasStatus(kind *meta.RESTMapping) bool {
	for _, path := range p.paths {
		if strings.HasSuffix(path, "/"+kind.Resource.Resource+"/{name}/status") {
			return true
		}
	}
	return false
}

// merge is what the API server's own code makes of an object that is applied to one that is there. It changes neither. The
// error is an answer of the API server where managers are in conflict.
func (p published) merge(live, object *unstructured.Unstructured, manager string, force bool) (*unstructured.Unstructured, error) {
	kind := object.GroupVersionKind()
	fields, err := managedfields.NewDefaultCRDFieldManager(p.types, oneVersion{}, oneVersion{}, oneVersion{}, kind, kind.GroupVersion(), "", nil)
	if err != nil {
		return nil, err
	}
	merged, err := fields.Apply(live.DeepCopy(), object.DeepCopy(), manager, force)
	if err != nil {
		return nil, err
	}
	made, ok := merged.(*unstructured.Unstructured)
	if !ok {
		return nil, errors.New("what the merge has made is no object")
	}
	return made, nil
}

// oneVersion is what the API server's code asks about kinds, for objects in one version, without defaults.
type oneVersion struct{}

// Convert is never asked for objects of one version.
func (oneVersion) Convert(any, any, any) error { return errOtherVersion }

// ConvertToVersion leaves the object in its version.
func (oneVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// ConvertFieldLabel leaves a label as it is.
func (oneVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default knows no defaults.
func (oneVersion) Default(runtime.Object) {}

// New is an empty object.
func (oneVersion) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(kind)
	return empty, nil
}

var errOtherVersion = errors.New("only the API server converts objects between versions")
