// Package variant works out what a variant of a package is to be: the upstream package, adapted, rendered and merged with what
// people made of it. All of it is pure: the same in gives the same out.
// It does not know where packages are kept, how objects of the cluster are read, or when any of this is done.
package variant

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/kpt"
)

// Blueprint is the upstream package that a variant is made from.
type Blueprint struct {
	// Repo is the URL of the repository, and Directory the folder in it, as the Kptfile is to say.
	Repo      string `json:"repo"`
	Directory string `json:"directory"`
	// Ref is the tag or branch by which the package was found, Commit what it led to, and Tree what is in the folder there.
	Ref    string `json:"ref"`
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
	// Package is what is in the folder.
	Package kpt.Package `json:"-"`
}

// Config is what a variant makes of its blueprint. Its JSON is canonical: what is empty is left out, and keys are in order.
type Config struct {
	// Owner is the variant.
	Owner kpt.Owner `json:"owner"`
	// Package is the path under which the repository keeps the package. The last element is its name.
	Package string `json:"package"`
	// Deployment says that what is in the repository is deployed: the package's context then says where it is.
	Deployment bool `json:"deployment,omitempty"`
	// Labels and Annotations are put on the Kptfile.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Context is what the package's context is to say, and ContextGone the keys that are taken out of upstream's.
	Context     map[string]string `json:"context,omitempty"`
	ContextGone []string          `json:"contextGone,omitempty"`
	// Namespace is where the objects go, which is then created; empty for where they are.
	Namespace string `json:"namespace,omitempty"`
	// Pipeline are the variant's own functions, which run before the package's.
	Pipeline kpt.Pipeline `json:"pipeline,omitzero"`
	// Sources are what fills the points of injection; see Sources.
	Sources []Source `json:"sources,omitempty"`
	// Bindings are what is bound to the slots of the package, in the order in which it is; names are there once.
	Bindings []Bound `json:"bindings,omitempty"`
}

// Intent is the digest of everything that a variant is made from, people's edits aside: two are the same only if what would be
// made is.
func Intent(b Blueprint, c Config) (string, error) {
	text, err := encode(struct {
		Blueprint Blueprint `json:"blueprint"`
		Config    Config    `json:"config"`
	}{b, c.canonical()})
	if err != nil {
		return "", fmt.Errorf("digest of the configuration: %w", err)
	}
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// canonical is the configuration in the one form that stands for all that mean the same.
func (c Config) canonical() Config {
	c.ContextGone = slices.Compact(slices.Sorted(slices.Values(c.ContextGone)))
	return c
}

// Applied is the configuration without what is injected and bound, in the form that DecodeApplied reads: what a package says of how it
// was made, so that it can be made once more.
func (c Config) Applied() (string, error) {
	c = c.canonical()
	c.Sources = slices.Clone(c.Sources)
	for i := range c.Sources {
		c.Sources[i].Content = nil
	}
	c.Bindings = slices.Clone(c.Bindings)
	for i := range c.Bindings {
		c.Bindings[i].Value = nil
	}
	return encode(c)
}

// DecodeApplied reads what Applied wrote. Fields that it does not know are an error: another release wrote them, and what it
// made cannot be made once more.
func DecodeApplied(text string) (Config, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	config := Config{}
	if err := decoder.Decode(&config); err != nil {
		return Config{}, fmt.Errorf("read the configuration that was applied: %w", err)
	}
	if decoder.More() {
		return Config{}, fmt.Errorf("read the configuration that was applied: something follows it")
	}
	return config, nil
}

func encode(value any) (string, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return string(bytes.TrimSpace(out.Bytes())), err
}

// Upstream is what the Kptfile says of the blueprint.
func (b Blueprint) upstream() (kpt.Upstream, kpt.Lock) {
	return kpt.Upstream{Repo: b.Repo, Directory: b.Directory, Ref: b.Ref, Strategy: "resource-merge"},
		kpt.Lock{Repo: b.Repo, Directory: b.Directory, Ref: b.Ref, Commit: b.Commit}
}

func sortedKeys(values map[string]string) []string { return slices.Sorted(maps.Keys(values)) }
