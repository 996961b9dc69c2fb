package build

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/internal/transport"
)

// entry is a line of a kustomization that names a file, a folder or a base.
type entry struct {
	field, value string
	present      bool // it has to be there
}

// checkKustomization refuses what a kustomization must not ask for, in words that name it.
func (c *confined) checkKustomization(name string, content []byte) error {
	var k types.Kustomization
	if err := yaml.Unmarshal(content, &k); err != nil {
		return nil //nolint:nilerr // kustomize reads it more strictly, and says what is wrong.
	}
	k.FixKustomization() // Bases become resources, older spellings of Helm charts the current one.
	c.quotes.learn(path.Join(artifactRoot, path.Dir(name)), &k)
	where := transport.PrintableQuoted(name)
	if len(k.HelmCharts) > 0 || k.HelmGlobals != nil {
		return fmt.Errorf("%w: %s has Helm charts", ErrForbidden, where)
	}
	for _, e := range entries(&k) {
		value := transport.PrintableQuoted(e.value)
		switch {
		case isRemote(e.value):
			return fmt.Errorf("%w: %s has %s %s: nothing is loaded from elsewhere", ErrForbidden, where, e.field, value)
		case path.IsAbs(e.value):
			return fmt.Errorf("%w: %s has %s %s: an absolute path", ErrForbidden, where, e.field, value)
		}
		target := path.Join(path.Dir(name), e.value)
		if target == ".." || strings.HasPrefix(target, "../") {
			return fmt.Errorf("%w: %s has %s %s: it leads out of the artifact", ErrForbidden, where, e.field, value)
		}
		if e.present && !c.Exists(path.Join(artifactRoot, target)) {
			return fmt.Errorf("%w: %s has %s %s, which is not in the artifact; nothing is loaded from elsewhere", ErrKustomize, where, e.field, value)
		}
	}
	return nil
}

// isRemote tells all spellings of what is elsewhere: URLs, and git's own.
func isRemote(value string) bool {
	lower := strings.ToLower(value)
	host, _, isPath := strings.Cut(lower, ":")
	return strings.Contains(lower, "://") || strings.HasPrefix(lower, "git::") || strings.Contains(lower, "?ref=") ||
		isPath && strings.Contains(host, "@") || strings.HasPrefix(lower, "github.com/")
}

// entries are the lines that name something outside of the file. What may stand in it as text instead is left out then.
func entries(k *types.Kustomization) []entry {
	var all []entry
	add := func(field string, present bool, values ...string) {
		for _, value := range values {
			if value != "" && (present || !strings.ContainsAny(value, "\n{")) {
				all = append(all, entry{field: field, value: value, present: present})
			}
		}
	}
	generator := func(field string, sources types.KvPairSources) {
		for _, file := range sources.FileSources {
			add(field, false, file[strings.Index(file, "=")+1:]) // key=file, or the file alone.
		}
		add(field, false, sources.EnvSources...)
		add(field, false, sources.EnvSource)
	}
	add("resources", true, k.Resources...)
	add("components", true, k.Components...)
	add("crds", true, k.Crds...)
	add("configurations", true, k.Configurations...)
	add("generators", false, k.Generators...)
	add("transformers", false, k.Transformers...)
	add("validators", false, k.Validators...)
	add("openapi path", true, k.OpenAPI["path"])
	for _, p := range k.PatchesStrategicMerge { //nolint:staticcheck // Deprecated, and still read by kustomize.
		add("patchesStrategicMerge", false, string(p))
	}
	for _, p := range slices.Concat(k.Patches, k.PatchesJson6902) { //nolint:staticcheck // Likewise.
		add("patch", true, p.Path)
	}
	for _, r := range k.Replacements {
		add("replacement", true, r.Path)
	}
	for _, g := range k.ConfigMapGenerator {
		generator("configMapGenerator", g.KvPairSources)
	}
	for _, g := range k.SecretGenerator {
		generator("secretGenerator", g.KvPairSources)
	}
	return all
}
