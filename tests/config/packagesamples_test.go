package config_test

import (
	"slices"
	"testing"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/fanout"
)

// TestPackageSamplesAreWhole: what the samples of packages refer to is there, and no two of them keep the same package.
func TestPackageSamplesAreWhole(t *testing.T) {
	t.Parallel()
	s := readSamples(t)
	secret := func(sample string, ref *packagesv1.LocalReference) {
		if ref == nil {
			return
		}
		if _, found := s.secrets[ref.Name]; !found {
			t.Errorf("sample %s: there is no Secret %s", sample, ref.Name)
		}
	}
	for name, repository := range s.repositories {
		if _, found := s.git[repository.Spec.GitRepositoryRef.Name]; !found {
			t.Errorf("sample %s: there is no GitRepository %s", name, repository.Spec.GitRepositoryRef.Name)
		}
		secret(name, repository.Spec.PushSecretRef)
		if commit := repository.Spec.Commit; commit != nil {
			secret(name, commit.SigningKeySecretRef)
		}
	}
	kept := map[string]string{}
	for name, variant := range s.variants {
		spec := variant.Spec
		for _, repository := range []string{spec.Upstream.Repo, spec.Downstream.Repo} {
			if _, found := s.repositories[repository]; !found {
				t.Errorf("sample %s: there is no Repository %s", name, repository)
			}
		}
		place := spec.Downstream.Repo + "/" + spec.GetDownstreamPackage()
		if other, taken := kept[place]; taken {
			t.Errorf("samples %s and %s keep the same package", name, other)
		}
		kept[place] = name
		if account := spec.ServiceAccountName; (len(spec.Injectors) > 0 || hasObjects(spec.Bindings)) && !s.accounts[account] {
			t.Errorf("sample %s: there is no ServiceAccount %q", name, account)
		}
	}
	compiler, err := fanout.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	for name, set := range s.sets {
		if _, found := s.repositories[set.Spec.Upstream.Repo]; !found {
			t.Errorf("sample %s: there is no Repository %s", name, set.Spec.Upstream.Repo)
		}
		if _, err := compiler.Compile(name, &set.Spec); err != nil {
			t.Errorf("sample %s: %v", name, err)
		}
	}
}

// hasObjects tells whether one of the bindings reads the cluster.
func hasObjects(all []packagesv1.Binding) bool {
	return slices.ContainsFunc(all, func(b packagesv1.Binding) bool { return b.From.Object != nil })
}

// TestPackageSamplesCoverTheSpec: every way of choosing a revision, every policy, and everything that goes into a package.
func TestPackageSamplesCoverTheSpec(t *testing.T) {
	t.Parallel()
	covered := map[string]bool{}
	for _, variant := range readSamples(t).variants {
		spec := variant.Spec
		up := spec.Upstream
		covered["newest"] = covered["newest"] || up.Revision == 0 && up.Tag == "" && up.Branch == "" && up.Range == ""
		covered["revision"] = covered["revision"] || up.Revision != 0
		covered["tag"] = covered["tag"] || up.Tag != ""
		covered["branch"] = covered["branch"] || up.Branch != ""
		covered["range"] = covered["range"] || up.Range != ""
		covered["dryRun"] = covered["dryRun"] || spec.DryRun
		covered["namespace"] = covered["namespace"] || spec.Namespace != ""
		covered["context"] = covered["context"] || spec.PackageContext != nil
		covered["pipeline"] = covered["pipeline"] || spec.Pipeline != nil
		covered["labels"] = covered["labels"] || len(spec.Labels) > 0
		for _, injector := range spec.Injectors {
			covered["named"] = covered["named"] || injector.Name != ""
			covered["selected"] = covered["selected"] || injector.LabelSelector != nil
			covered["secret"] = covered["secret"] || injector.AllowSecrets
		}
		for _, b := range spec.Bindings {
			covered["binds an object"] = covered["binds an object"] || b.From.Object != nil && b.Path == ""
			covered["binds a field"] = covered["binds a field"] || b.From.Object != nil && b.Path != ""
			covered["binds a literal"] = covered["binds a literal"] || b.From.Literal != nil
			covered["binds context"] = covered["binds context"] || b.From.PackageContext != ""
			covered["binds within"] = covered["binds within"] || b.From.PackageObject != nil
		}
		covered["approval "+string(spec.GetApprovalPolicy())] = true
		covered["conflict "+string(spec.GetConflictPolicy())] = true
		covered[string(spec.GetAdoptionPolicy())], covered[string(spec.GetDeletionPolicy())] = true, true
	}
	for _, want := range []string{
		"newest", "revision", "tag", "branch", "range", "dryRun", "namespace", "context", "pipeline", "labels", "named", "selected", "secret",
		"binds an object", "binds a field", "binds a literal", "binds context", "binds within",
		"approval Manual", "approval Initial", "approval Always", "conflict Upstream", "conflict Local", "conflict Fail",
		"adoptNone", "adoptExisting", "delete", "orphan",
	} {
		if !covered[want] {
			t.Errorf("no sample has %s", want)
		}
	}
}
