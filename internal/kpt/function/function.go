// Package function renders kpt packages: it runs the functions of their pipelines in process, on the objects of the package.
// It does not know where packages come from, what is done with them, or anything of containers, networks and clusters.
package function

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/kpt"
)

// apiVersion is that of the functions' own kinds of configuration.
const apiVersion = "fn.kpt.dev/v1alpha1"

// ErrUnknownFunction says that a pipeline names a function that is not among Names.
var ErrUnknownFunction = errors.New("unknown function")

// function changes the objects of a run in place. It is deterministic, and running it again changes nothing more.
type function func(ctx context.Context, r *run) error

// functions are all there are, by the last part of their image's name.
func functions() map[string]function {
	return map[string]function{
		"apply-replacements": applyReplacements,
		"apply-setters":      applySetters,
		"cel-mutate":         celMutate,
		"cel-validate":       celValidate,
		"create-setters":     createSetters,
		"search-replace":     searchReplace,
		"set-annotations":    setAnnotations,
		"set-image":          setImage,
		"set-labels":         setLabels,
		"set-namespace":      setNamespace,
		"starlark":           runStarlark,
		"upsert-resource":    upsertResource,

		"kubeconform": kubeconform,
		"kubeval":     kubeconform, // What was there before it, with the same settings.

		"ensure-name-substring": ensureNameSubstring,
		"set-name-prefix":       setNamePrefix,

		"remove-local-config-resources": removeLocalConfig,
	}
}

// takesObjects tells whether the function's configuration is not about what it does, but objects of whatever kind.
func takesObjects(called string) bool { return called == "upsert-resource" }

// Names are the functions that there are, sorted.
func Names() []string { return slices.Sorted(maps.Keys(functions())) }

// lookup finds the function of an entry in a pipeline. Programs are never run.
func lookup(image, exec string) (string, function, error) {
	if exec != "" {
		return exec, nil, unknown(fmt.Sprintf("the program %q is not run", exec))
	}
	name := kpt.ImageName(image)
	if found, ok := functions()[name]; ok {
		return name, found, nil
	}
	return name, nil, unknown(fmt.Sprintf("%q", image))
}

func unknown(what string) error {
	return fmt.Errorf("%w: %s; there are %s", ErrUnknownFunction, what, strings.Join(Names(), ", "))
}
