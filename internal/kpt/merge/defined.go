package merge

import (
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// defines tells which kind the object defines, if it does.
func defines(r *kpt.Resource) (of groupKind, ok bool) {
	if group, _ := r.GroupVersion(); group != "apiextensions.k8s.io" || r.Kind() != "CustomResourceDefinition" {
		return groupKind{}, false
	}
	spec := kpt.Lookup(r.Node.YNode(), "spec")
	of = groupKind{group: kpt.Text(spec, "group"), kind: kpt.Text(spec, "names", "kind")}
	return of, of.kind != ""
}

// definedShapes are those of the versions that a CustomResourceDefinition has a schema for.
func definedShapes(definition *yaml.Node) map[string]*shape {
	spec := kpt.Lookup(definition, "spec")
	found := map[string]*shape{}
	shared := kpt.Lookup(spec, "validation", "openAPIV3Schema")
	if version := kpt.Text(spec, "version"); version != "" && shared != nil {
		found[version] = definedObject(shared)
	}
	for _, version := range kpt.Elements(kpt.Lookup(spec, "versions")) {
		schema := kpt.Lookup(version, "schema", "openAPIV3Schema")
		if schema == nil {
			schema = shared
		}
		if name := kpt.Text(version, "name"); name != "" && schema != nil {
			found[name] = definedObject(schema)
		}
	}
	return found
}

// definedObject is the shape of a whole object, whose metadata every schema leaves to Kubernetes.
func definedObject(schema *yaml.Node) *shape {
	object := definedShape(schema, maxDepth)
	if object == nil {
		object = &shape{}
	}
	if object.fields == nil {
		object.fields = map[string]*shape{}
	}
	object.fields["metadata"] = builtin().metadata()
	return object
}

// definedShape reads an OpenAPI schema, and is nil for one that says nothing of lists and maps.
func definedShape(schema *yaml.Node, depth int) *shape {
	if schema == nil || schema.Kind != yaml.MappingNode || depth == 0 {
		return nil
	}
	read := &shape{fields: map[string]*shape{}}
	if properties := kpt.Lookup(schema, "properties"); properties != nil && properties.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(properties.Content); i += 2 {
			if field := definedShape(properties.Content[i+1], depth-1); field != nil {
				read.fields[properties.Content[i].Value] = field
			}
		}
	}
	if kpt.Text(schema, "x-kubernetes-embedded-resource") == "true" {
		read.fields["metadata"] = builtin().metadata()
	}
	if more := kpt.Lookup(schema, "additionalProperties"); more != nil {
		read.every = definedShape(more, depth-1)
		read.open = isScalarType(kpt.Text(more, "type"))
	}
	if items := kpt.Lookup(schema, "items"); items != nil {
		read.every = definedShape(items, depth-1)
		read.set = kpt.Text(schema, "x-kubernetes-list-type") == "set" && isScalarType(kpt.Text(items, "type"))
		read.keys = definedKeys(schema, items)
	}
	if one := definedUnion(schema); len(one.fields) > 1 {
		read.unions = append(read.unions, one)
	}
	if len(read.fields) == 0 && len(read.unions) == 0 && read.every == nil && !read.open && !read.set && len(read.keys) == 0 {
		return nil
	}
	return read
}

// definedUnion is that of the fields of which oneOf requires one each.
func definedUnion(schema *yaml.Node) union {
	found := union{}
	for _, one := range kpt.Elements(kpt.Lookup(schema, "oneOf")) {
		if required := kpt.Elements(kpt.Lookup(one, "required")); len(required) == 1 {
			found.fields = append(found.fields, required[0].Value)
		}
	}
	return found
}

func isScalarType(name string) bool {
	return strings.Contains(" string integer number boolean ", " "+name+" ") && name != ""
}

// definedKeys are those by which the API server tells elements apart, or if it does not those by which kubectl does.
func definedKeys(schema, items *yaml.Node) []keyField {
	names := []string{}
	for _, key := range kpt.Elements(kpt.Lookup(schema, "x-kubernetes-list-map-keys")) {
		names = append(names, key.Value)
	}
	if name := kpt.Text(schema, "x-kubernetes-patch-merge-key"); len(names) == 0 && name != "" {
		names = append(names, name)
	}
	keys := make([]keyField, 0, len(names))
	for _, name := range names {
		keys = append(keys, keyField{name: name, fallback: kpt.Text(items, "properties", name, "default")})
	}
	return keys
}
