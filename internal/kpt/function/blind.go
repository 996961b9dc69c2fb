package function

import (
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
)

// blind are the functions that leave Kptfiles out of what they look at, and apply-setters, which looks at what has its comment.
func blind() []string {
	return []string{
		"apply-setters", "cel-mutate", "cel-validate", "create-setters", "ensure-name-substring", "kubeconform", "kubeval",
		"remove-local-config-resources", "search-replace", "set-annotations", "set-image", "set-labels", "set-name-prefix", "set-namespace",
		"starlark", "upsert-resource",
	}
}

// SeesName tells whether what functions make of the package may depend on the name in its own Kptfile: whether one of them may
// look there.
func SeesName(resources *kpt.Resources) bool {
	for _, item := range resources.Items {
		if item.IsKptfile() && !isPlain(item.Node.YNode()) {
			return true
		}
	}
	for _, folder := range resources.Folders() {
		kptfile, err := resources.Kptfile(folder)
		if err != nil {
			return true // Rendering tells what is wrong.
		}
		pipeline, err := kptfile.Pipeline()
		if err != nil || slices.ContainsFunc(slices.Concat(pipeline.Mutators, pipeline.Validators), sees) {
			return true
		}
	}
	return false
}

// sees tells whether an entry's function may see a Kptfile.
func sees(entry kpt.Function) bool {
	return entry.Exec != "" || path.Base(entry.ConfigPath) == kpt.KptfileName || !slices.Contains(blind(), kpt.ImageName(entry.Image))
}

// isPlain tells whether nothing in the Kptfile is the same as something else by an alias, or set by a comment.
func isPlain(n *yaml.Node) bool {
	return n.Kind != yaml.AliasNode && n.Anchor == "" && !strings.Contains(n.HeadComment+n.LineComment+n.FootComment, setterMark) &&
		!slices.ContainsFunc(n.Content, func(below *yaml.Node) bool { return !isPlain(below) })
}
