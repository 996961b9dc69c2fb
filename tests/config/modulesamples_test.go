package config_test

import (
	"testing"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// TestModuleSamplesAreWhole: what the samples of modules refer to is there, in a release that can be chosen.
func TestModuleSamplesAreWhole(t *testing.T) {
	t.Parallel()
	s := readSamples(t)
	versions := map[string]bool{}
	for name, template := range s.templates {
		versions[template.GetModuleName()+" "+template.Spec.Version] = true
		for _, secret := range secretsOf(template.Spec.Artifact) {
			if _, found := s.secrets[secret]; !found {
				t.Errorf("sample %s: there is no Secret %s", name, secret)
			}
		}
		if ref := template.Spec.Artifact.SourceRef; ref != nil {
			source, found := s.oci[ref.Name]
			if ref.Kind != sourcev1.OCIRepositoryKind || !found {
				t.Errorf("sample %s: there is no %s %s", name, ref.Kind, ref.Name)
			} else if source.Spec.Reference == nil || source.Spec.Reference.Digest == "" {
				t.Errorf("sample %s: its source is not pinned", name)
			}
		}
	}
	for name, module := range s.modules {
		for _, channel := range module.Spec.Channels {
			if !versions[name+" "+channel.Version] {
				t.Errorf("sample %s: channel %s leads to no template", name, channel.Name)
			}
		}
	}
	for name, installation := range s.installations {
		request := installation.Spec.Module
		if _, found := s.templates[templateOf(request)]; request.TemplateRef != nil && !found {
			t.Errorf("sample %s: there is no ModuleTemplate %s", name, request.TemplateRef.Name)
		}
		if request.Version != "" && !versions[request.Name+" "+request.Version] {
			t.Errorf("sample %s: there is no version %s of %s", name, request.Version, request.Name)
		}
		if account := installation.Spec.ServiceAccountName; account == "" || !s.accounts[account] {
			t.Errorf("sample %s: there is no ServiceAccount %q", name, account)
		}
	}
}

func templateOf(request modulesv1.ModuleRequest) string {
	if request.TemplateRef == nil {
		return ""
	}
	return request.TemplateRef.Name
}

func secretsOf(artifact modulesv1.TemplateArtifact) []string {
	var names []string
	add := func(refs ...*modulesv1.LocalReference) {
		for _, ref := range refs {
			if ref != nil {
				names = append(names, ref.Name)
			}
		}
	}
	if artifact.OCI != nil {
		add(artifact.OCI.SecretRef, artifact.OCI.CertSecretRef, artifact.OCI.ProxySecretRef)
	}
	if artifact.Git != nil {
		add(artifact.Git.SecretRef)
	}
	return names
}

// TestModuleSamplesCoverTheSpec: every place that a release can be in, and every way of choosing and changing one.
func TestModuleSamplesCoverTheSpec(t *testing.T) {
	t.Parallel()
	s := readSamples(t)
	covered := map[string]bool{}
	see := func(what string, seen bool) { covered[what] = covered[what] || seen }
	for _, template := range s.templates {
		spec := template.Spec
		see("oci", spec.Artifact.OCI != nil)
		see("git", spec.Artifact.Git != nil)
		see("source", spec.Artifact.SourceRef != nil)
		see("claimed channel", spec.Channel != "")
		see("managed resources", len(spec.ManagedResources) > 0)
		see("default configuration", spec.DefaultConfig != nil)
		see("health", spec.Health != nil)
		see("support", spec.Support != nil)
	}
	for _, module := range s.modules {
		see("default channel", module.Spec.DefaultChannel != "")
		see("consumers", module.Spec.Consumers != nil)
		for _, channel := range module.Spec.Channels {
			see("suspended channel", channel.Suspended)
		}
	}
	for _, installation := range s.installations {
		spec := installation.Spec
		see("by channel", spec.Module.Channel != "")
		see("by version", spec.Module.Version != "")
		see("by range", spec.Module.Range != "")
		see("by latest", spec.Module.Latest)
		see("by template", spec.Module.TemplateRef != nil)
		see("catalogue "+string(spec.Module.GetCatalog()), true)
		see("upgrades "+string(spec.GetUpgradeMode()), true)
		see("going back", spec.Upgrade != nil && spec.Upgrade.AllowDowngradeTo != "")
		see("pruning", spec.Prune != nil)
		see("orphaning", spec.GetDeletionMode() == modulesv1.DeletionOrphan)
		see("pausing", spec.GetManagement() == modulesv1.ManagementPaused)
		see("dependencies", len(spec.DependsOn) > 0)
		if config := spec.Config; config != nil {
			see("substitution", len(config.Substitute) > 0 && len(config.SubstituteFrom) > 0)
			see("patches", len(config.Patches) > 0)
			see("images", len(config.Images) > 0)
			see("target namespace", config.TargetNamespace != "")
			see("common metadata", config.CommonMetadata != nil)
		}
	}
	for _, want := range []string{
		"oci", "git", "source", "claimed channel", "managed resources", "default configuration", "health", "support",
		"default channel", "consumers", "suspended channel", "by channel", "by version", "by range", "by latest", "by template",
		"catalogue Auto", "catalogue Local", "catalogue System", "upgrades Automatic", "upgrades Manual", "going back", "pruning",
		"orphaning", "pausing", "dependencies", "substitution", "patches", "images", "target namespace", "common metadata",
	} {
		if !covered[want] {
			t.Errorf("no sample shows %s", want)
		}
	}
}
