package kpt

import (
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// porchMarker begins the names of entries that a PackageVariant of Porch keeps: PackageVariant.<variant>.<function>.<index>.
const porchMarker = "PackageVariant."

// PorchFunction is what an entry of the name is called by the PackageVariant of Porch that keeps it; not ok for all other entries.
// Porch itself does not know its entries again where a name has a dot in it. The variant's is known here, of all others the first
// dot ends it.
func PorchFunction(name, variant string) (function string, index int, ok bool) {
	rest, ok := strings.CutPrefix(name, porchMarker)
	if !ok {
		return "", 0, false
	}
	if own, isOwn := strings.CutPrefix(rest, variant+"."); isOwn {
		rest = own
	} else if _, rest, ok = strings.Cut(rest, "."); !ok {
		return "", 0, false
	}
	last := strings.LastIndexByte(rest, '.')
	if last < 0 {
		return "", 0, false
	}
	number, err := strconv.ParseUint(rest[last+1:], 10, 31)
	return rest[:last], int(number), err == nil
}

// AdoptFunctions gives the entries of the pipeline that a PackageVariant of Porch keeps the names under which the owner keeps them.
// Those that the upstream package has as well, nil for none, are of the variant that made that one, and stay as they are.
func (k *Kptfile) AdoptFunctions(owner Owner, upstream *Kptfile) {
	for _, field := range []string{"mutators", "validators"} {
		theirs := map[string]bool{}
		if upstream != nil {
			for _, entry := range Elements(Lookup(upstream.root(), partPipeline, field)) {
				theirs[Text(entry, "name")] = true
			}
		}
		for _, entry := range Elements(Lookup(k.root(), partPipeline, field)) {
			name := Text(entry, "name")
			function, index, ok := PorchFunction(name, owner.Name)
			if ok && !theirs[name] && entry.Kind == yaml.MappingNode {
				setScalar(entry, "name", owner.FunctionName(index, function))
			}
		}
	}
}
