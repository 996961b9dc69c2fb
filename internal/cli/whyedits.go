package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/catalog/objects"
	"sluice.dev/sluice/internal/revision"
)

// aboutVersion is why it is a version, or why not, and which edits lead to it.
type aboutVersion struct {
	Version string `json:"version"`
	// Chosen says that it runs, or is about to.
	Chosen bool `json:"chosen"`
	// Rule is the one that left it out, where one did.
	Rule string `json:"rule,omitempty"`
	Why  string `json:"why"`
	// Near are versions that may have been meant.
	Near  []string    `json:"near"`
	Edits []offerEdit `json:"edits"`
	// Obstacle is why no edit leads there.
	Obstacle *reasoned `json:"obstacle,omitempty"`
}

// offerEdit is what of a spec is to be written anew.
type offerEdit struct {
	Module  *modulesv1.ModuleRequest `json:"module,omitempty"`
	Upgrade *modulesv1.UpgradePolicy `json:"upgrade,omitempty"`
	// Waits says that the plan of the release has to be approved then.
	Waits bool `json:"waits,omitempty"`
}

// offer adds the edits of the installation that lead to the version, and why there are none.
func (a *aboutVersion) offer(obj *modulesv1.ModuleInstallation, request catalog.Request, installed catalog.Installed, index catalog.Index, now time.Time) {
	edits, obstacle := catalog.Edits(request, installed, index, now, a.Version)
	for _, edit := range edits {
		spec := objects.Edited(obj.Spec, request, edit.Request)
		offered := offerEdit{Waits: edit.Waits}
		if !equality.Semantic.DeepEqual(spec.Module, obj.Spec.Module) {
			offered.Module = &spec.Module
		}
		if !equality.Semantic.DeepEqual(spec.Upgrade, obj.Spec.Upgrade) {
			offered.Upgrade = spec.Upgrade
		}
		offered.withoutDefaults(obj.Spec)
		a.Edits = append(a.Edits, offered)
	}
	if obstacle != nil {
		a.Obstacle = &reasoned{obstacle.Reason, obstacle.Message}
	}
}

// withoutDefaults leaves out what API servers fill in, unless the edit is about that.
func (e *offerEdit) withoutDefaults(before modulesv1.ModuleInstallationSpec) {
	if e.Module != nil && e.Module.Catalog == modulesv1.CatalogAuto && before.Module.GetCatalog() == modulesv1.CatalogAuto {
		e.Module.Catalog = ""
	}
	if e.Upgrade != nil && e.Upgrade.Mode == modulesv1.UpgradeAutomatic && before.GetUpgradeMode() == modulesv1.UpgradeAutomatic {
		e.Upgrade.Mode = ""
	}
}

// about is why the decision is for the version or not.
func about(version revision.Version, d catalog.Decision, releases []catalog.Release) *aboutVersion {
	told := &aboutVersion{Version: version.String()}
	switch {
	case d.Target != nil && states(d.Target.Version, version):
		told.Chosen, told.Why = true, "it is selected, and nothing is in the way"
		return told
	case d.Hold != nil && d.Hold.Candidate != nil && states(d.Hold.Candidate.Version, version):
		told.Why = "it is selected, and held by " + d.Hold.Reason + ": " + d.Hold.Message
		return told
	}
	for _, rule := range d.Trace {
		for _, dropped := range rule.Dropped {
			if states(dropped.Version, version) {
				// The last of its templates was left out by the last of the rules.
				told.Rule, told.Why = rule.Name, "it "+dropped.Why
			}
		}
	}
	switch {
	case told.Rule != "":
	case slices.ContainsFunc(releases, func(r catalog.Release) bool { return states(r.Version, version) }) && d.Hold != nil:
		told.Why = d.Hold.Reason + ": " + d.Hold.Message
	default:
		told.Near = nearVersions(version, releases)
		told.Why = fmt.Sprintf("module %s has no such release in namespace %s", d.Module, d.Namespace)
		if d.Namespace == "" || d.Module == "" {
			told.Why = d.Hold.Reason + ": " + d.Hold.Message
		}
	}
	return told
}

// states says whether the text is the version, by precedence.
func states(text string, version revision.Version) bool {
	parsed, err := revision.ParseStrict(text)
	return err == nil && parsed.Compare(version) == 0
}

// nearVersions are the next lower and the next higher version, and those that are spelt alike. The releases are sorted, the
// highest first.
func nearVersions(version revision.Version, releases []catalog.Release) []string {
	var higher, lower string
	var all []string
	for _, release := range releases {
		parsed, err := revision.ParseStrict(release.Version)
		if err != nil {
			continue
		}
		all = append(all, release.Version)
		switch order := parsed.Compare(version); {
		case order > 0:
			higher = release.Version
		case order < 0 && lower == "":
			lower = release.Version
		}
	}
	near := append([]string{lower, higher}, catalog.Near(version.String(), all)...)
	var told []string
	for _, one := range near {
		if one != "" && !slices.Contains(told, one) {
			told = append(told, one)
		}
	}
	return told
}

// String is the edit as it stands in a manifest.
func (e offerEdit) String() string {
	var parts []string
	if e.Module != nil {
		parts = append(parts, "spec.module: "+flow(e.Module))
	}
	if e.Upgrade != nil {
		parts = append(parts, "spec.upgrade: "+flow(e.Upgrade))
	}
	text := strings.Join(parts, " and ")
	if e.Waits {
		text += "; its plan is to be approved then"
	}
	return text
}

// flow is the value as YAML in one line, its fields in their order.
func flow(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	node, err := kyaml.Parse(string(raw))
	if err != nil {
		return err.Error()
	}
	return flowOf(node.YNode())
}

func flowOf(node *kyaml.Node) string {
	var parts []string
	if node.Kind == kyaml.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			parts = append(parts, node.Content[i].Value+": "+flowOf(node.Content[i+1]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	if node.Kind == kyaml.SequenceNode {
		for _, item := range node.Content {
			parts = append(parts, flowOf(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	var read []any
	plain := node.Tag != kyaml.NodeTagString
	if !plain && yaml.Unmarshal([]byte("["+node.Value+"]"), &read) == nil {
		plain = len(read) == 1 && read[0] == any(node.Value)
	}
	if plain {
		return node.Value
	}
	return strconv.Quote(node.Value)
}
