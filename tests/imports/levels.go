// Package imports holds the rule of who may import whom, and the test that keeps it.
// It does not know what any package does.
package imports

import (
	"path"
	"strings"
)

// layer is one row of the import rule: imports go downwards only, and never to a sibling.
type layer struct {
	// level is how high the row stands. Rows of the same level are siblings.
	level int
	// packages are patterns of folders, as path.Match reads them.
	packages []string
	// kubernetes lists the Kubernetes libraries that the layer may use, by their import path or the start of it.
	kubernetes []string
}

const module = "sluice.dev/sluice"

// anything allows every Kubernetes library.
const anything = "*"

// layers is the import rule. A folder belongs to the first row that names it.
func layers() []layer {
	return []layer{
		// How objects are decoded is the same for every group of kinds.
		{level: -1, packages: []string{"api/decode"}, kubernetes: []string{"k8s.io/apimachinery", "sigs.k8s.io/json"}},
		{level: 0, packages: []string{"api/*/*"}, kubernetes: []string{"k8s.io/apimachinery", "sigs.k8s.io/json", "github.com/fluxcd/pkg/apis/meta"}},
		// How things are shared is the same whatever they are, and how words are shown.
		{level: -1, packages: []string{"config", "internal/fair", "internal/printable"}},
		{level: 0, packages: []string{
			"storage", "internal/failure", "internal/memory", "internal/revision", "internal/credential",
			"internal/strictjson", "internal/tree", "internal/expression", "internal/schema",
		}},
		// How a YAML text changes is the same whatever the text says.
		{level: 0, packages: []string{"internal/kpt/yamltext"}},
		// Scripts are bounded whatever they are for.
		{level: 1, packages: []string{"internal/script"}},
		// What packages say; it asks yamltext alone.
		{level: 1, packages: []string{"internal/kpt"}},
		{level: 2, packages: []string{"internal/kpt/merge"}},
		// What the functions of packages do. Selectors are read as Kubernetes reads them.
		{level: 2, packages: []string{"internal/kpt/function"}, kubernetes: []string{"k8s.io/apimachinery/pkg/labels"}},
		// How a module runs is the same whatever it is for.
		{level: 1, packages: []string{"internal/kpt/wasm"}},
		// What to delete is a pure decision, and every store asks for it.
		{level: 0, packages: []string{"storage/retention"}},
		{level: 1, packages: []string{"storage/*", "internal/transport", "internal/archive", "internal/verify", "internal/git/sign"}},
		{level: 2, packages: []string{"internal/git", "internal/forge", "internal/registry", "internal/registry/signatures", "internal/bucket"}},
		{level: 2, packages: []string{"internal/auth"}, kubernetes: []string{
			"k8s.io/api", "k8s.io/apimachinery", "sigs.k8s.io/controller-runtime/pkg/client",
			"github.com/fluxcd/pkg/auth",
		}},
		// What a YAML text takes is the same whatever it says.
		{level: 1, packages: []string{"internal/yamlweight"}},
		{level: 2, packages: []string{"internal/helm/index", "internal/helm/chart"}},
		{level: 3, packages: []string{"internal/helm"}},
		{level: 2, packages: []string{"internal/engine/fetch"}},
		// YAML of several documents is read as Kubernetes reads it.
		{level: 2, packages: []string{"internal/compose"}, kubernetes: []string{"k8s.io/apimachinery/pkg/util/yaml"}},
		{level: 2, packages: []string{"internal/engine/build"}, kubernetes: []string{
			"k8s.io/apimachinery", "sigs.k8s.io/kustomize/api", "github.com/fluxcd/pkg/envsubst",
		}},
		{level: 2, packages: []string{"internal/engine/health"}, kubernetes: []string{"k8s.io/apimachinery"}},
		{level: 2, packages: []string{"internal/engine/cluster"}, kubernetes: []string{
			"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "sigs.k8s.io/controller-runtime/pkg/client",
			"sigs.k8s.io/structured-merge-diff",
		}},
		{level: 3, packages: []string{"internal/catalog", "internal/pkgrepo"}},
		// Who vouches for what is in a registry is found out in the same way for every kind of source.
		{level: 3, packages: []string{"internal/trust"}},
		// What is generated gets names and labels, which are those of Kubernetes.
		{level: 4, packages: []string{"internal/source/generator"}, kubernetes: []string{"k8s.io/apimachinery/pkg/util/validation"}},
		{level: 4, packages: []string{"internal/source", "internal/source/*"}},
		// Which functions operators add is their decision, and the registries'.
		{level: 3, packages: []string{"internal/extension"}},
		// What a variant of a package is to be is worked out from the package alone.
		{level: 3, packages: []string{"internal/variant"}},
		// Waves select by labels, and expressions have Kubernetes' own functions, which know of no API server.
		{level: 3, packages: []string{"internal/fanout"}, kubernetes: []string{"k8s.io/apimachinery", "k8s.io/apiserver/pkg/cel/library"}},
		{level: 3, packages: []string{"internal/engine/watch"}, kubernetes: []string{"k8s.io/apimachinery", "k8s.io/client-go"}},
		{level: 4, packages: []string{"internal/engine"}, kubernetes: []string{
			"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "sigs.k8s.io/controller-runtime/pkg/client",
		}},
		{level: 4, packages: []string{"internal/status", "internal/event"}, kubernetes: []string{
			"k8s.io/api", "k8s.io/apimachinery", "sigs.k8s.io/controller-runtime/pkg/client",
			"github.com/fluxcd/pkg/apis", "github.com/fluxcd/pkg/runtime/conditions",
		}},
		{level: 4, packages: []string{"internal/catalog/objects"}, kubernetes: []string{
			"k8s.io/apimachinery", "github.com/fluxcd/pkg/apis", "github.com/fluxcd/pkg/runtime/conditions",
		}},
		{level: 5, packages: []string{"internal/catalog/published"}, kubernetes: []string{
			"k8s.io/apimachinery", "github.com/fluxcd/pkg/apis", "sigs.k8s.io/controller-runtime/pkg/client",
		}},
		{level: 5, packages: []string{"internal/kernel"}, kubernetes: []string{anything}},
		// How a folder becomes an artifact is the same whoever pushes it.
		{level: 5, packages: []string{"internal/publish"}, kubernetes: []string{"k8s.io/apimachinery"}},
		// What people are told of objects is the same wherever they are told it.
		{level: 5, packages: []string{"internal/view"}, kubernetes: []string{"k8s.io/apimachinery"}},
		// Pages show what they are given, whoever has read it.
		{level: 6, packages: []string{"internal/ui"}, kubernetes: []string{"k8s.io/apimachinery", "k8s.io/client-go/tools/cache"}},
		// What an upgrade would change, for whoever asks.
		{level: 6, packages: []string{"internal/plan"}, kubernetes: []string{anything}},
		// What upstream has of a source, for whoever asks.
		{level: 6, packages: []string{"internal/rebuild"}, kubernetes: []string{"sigs.k8s.io/controller-runtime/pkg/client"}},
		{level: controllersLevel, packages: []string{"internal/cli"}, kubernetes: []string{anything}},
		// What the controllers of modules share; they do not know each other.
		{level: controllersLevel, packages: []string{
			"controllers/modules/offers", "controllers/modules/records", "controllers/modules/wakes",
		}, kubernetes: []string{anything}},
		// How objects are read for the variants of packages.
		{level: controllersLevel, packages: []string{"controllers/packages/lookups"}, kubernetes: []string{anything}},
		{level: 8, packages: []string{"controllers/*", "controllers/modules/*"}, kubernetes: []string{anything}},
		{level: 9, packages: []string{"internal/app"}, kubernetes: []string{anything}},
		{level: 10, packages: []string{"."}, kubernetes: []string{anything}},
	}
}

// controllersLevel is where the controllers stand; below it nothing reads the clock.
const controllersLevel = 7

// plain are libraries under Kubernetes' names that know nothing of Kubernetes.
func plain() []string {
	return []string{
		"k8s.io/utils", "sigs.k8s.io/yaml", "sigs.k8s.io/kustomize/kyaml", "github.com/fluxcd/pkg/sourceignore",
	}
}

// kubernetes are the names under which Kubernetes' libraries, and those built on them, are imported.
func kubernetes() []string { return []string{"k8s.io", "sigs.k8s.io", "github.com/fluxcd/pkg"} }

// layerOf is the row that the folder belongs to.
func layerOf(folder string) (row layer, listed bool) {
	for _, row := range layers() {
		if matches(row.packages, folder) {
			return row, true
		}
	}
	return layer{}, false
}

// objection says what is wrong with the folder's import, or nothing.
func objection(folder, imported string) string {
	row, listed := layerOf(folder)
	if !listed {
		return "the folder is in no row of the import rule"
	}
	if ours, ok := local(imported); ok {
		other, listed := layerOf(ours)
		switch {
		case !listed:
			return "the imported folder is in no row of the import rule, or only for tests"
		case other.level > row.level:
			return "imports go downwards only"
		case other.level == row.level && path.Dir(folder) != ours:
			// A folder may import the one it stands in: a kind of source fills in the pipeline.
			return "siblings never import each other"
		}
		return ""
	}
	if under(kubernetes(), imported) && !under(plain(), imported) && !under(row.kubernetes, imported) {
		return "this layer does not know that part of Kubernetes"
	}
	return ""
}

// local is the folder of an import of our own.
func local(imported string) (folder string, ok bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

// forTests says whether the folder is there for tests alone; those may import anything.
func forTests(folder string) bool {
	return folder == "tests" || strings.HasPrefix(folder, "tests/") || strings.HasSuffix(folder, "test")
}

func matches(patterns []string, folder string) bool {
	for _, pattern := range patterns {
		if ok, err := path.Match(pattern, folder); ok && err == nil {
			return true
		}
	}
	return false
}

func under(prefixes []string, imported string) bool {
	for _, prefix := range prefixes {
		if prefix == anything || imported == prefix || strings.HasPrefix(imported, prefix+"/") {
			return true
		}
	}
	return false
}
