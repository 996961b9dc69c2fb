package function

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/schema"
)

// ErrSchemas says that the schemas of the API server are needed and cannot be had now.
var ErrSchemas = errors.New("there are no schemas to validate by")

// ErrUnknownKind says that kinds are in no schema, and that nothing else is wrong: they may be defined one day.
var ErrUnknownKind = errors.New("a kind is not known")

// Schemas are what an API server says of its kinds.
type Schemas interface {
	// Version is what it says of a version of a group, nil where it has no such version.
	Version(ctx context.Context, group, version string) (*schema.Document, error)
	// Digest is that of what Version returns, empty where it has no such version.
	Digest(ctx context.Context, group, version string) (string, error)
}

// apiOf is a version of a group.
type apiOf struct{ group, version string }

// usedSchemas are the digests of those that a rendering asked for.
type usedSchemas map[apiOf]string

// same tells whether the server still says the same.
func (u usedSchemas) same(ctx context.Context, schemas Schemas) (bool, error) {
	for api, digest := range u {
		now, err := schemas.Digest(ctx, api.group, api.version)
		if err != nil {
			return false, &Error{Err: fmt.Errorf("%w: %w", ErrSchemas, err)}
		}
		if now != digest {
			return false, nil
		}
	}
	return true, nil
}

// version asks the server, and notes what for. What is noted first stays: a server that changed its mind in the meantime has to
// be asked again.
func (g *rendering) version(ctx context.Context, group, version string) (*schema.Document, error) {
	if g.options.Schemas == nil {
		return nil, nil //nolint:nilnil // There is no server, and so no version.
	}
	d, err := g.options.Schemas.Version(ctx, group, version)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSchemas, err)
	}
	digest := ""
	if d != nil {
		digest = d.Digest
	}
	if _, noted := g.used[apiOf{group, version}]; !noted {
		g.used[apiOf{group, version}] = digest
	}
	return d, nil
}

// definitions are the kinds that CustomResourceDefinitions of the package define.
func definitions(objects []*object) (map[schema.GroupVersionKind]*schema.Document, error) {
	found := map[schema.GroupVersionKind]*schema.Document{}
	for _, o := range objects {
		if !o.is("apiextensions.k8s.io", "CustomResourceDefinition") || o.resource.IsLocalConfig() {
			continue
		}
		for i, version := range kpt.Elements(kpt.Lookup(o.root, "spec", "versions")) {
			kind := schema.GroupVersionKind{
				Group: kpt.Text(o.root, "spec", "group"), Version: kpt.Text(version, "name"), Kind: kpt.Text(o.root, "spec", "names", "kind"),
			}
			node := kpt.Lookup(version, "schema", "openAPIV3Schema")
			if node == nil {
				node = &yaml.Node{Kind: yaml.MappingNode, Tag: tagMap}
			}
			d, err := schema.Of(kind, node)
			if err != nil {
				return nil, o.fail([]string{"spec", "versions", fmt.Sprint(i), "schema", "openAPIV3Schema"}, err)
			}
			found[kind] = d
		}
	}
	return found, nil
}
