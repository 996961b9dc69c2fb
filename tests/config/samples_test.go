package config_test

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// TestSamplesAreWhole: each is an object of the API without a field too many, and what it refers to is there.
func TestSamplesAreWhole(t *testing.T) {
	t.Parallel()
	repositories, secrets := map[string]sourcev1.GitRepository{}, map[string]bool{}
	for _, object := range build(t, "samples") {
		switch object.GetKind() {
		case "Secret":
			secrets[as[corev1.Secret](t, object).Name] = true
		case sourcev1.GitRepositoryKind:
			repo := as[sourcev1.GitRepository](t, object)
			repositories[repo.Name] = repo
		default:
			t.Errorf("%s %s is no sample of ours", object.GetKind(), object.GetName())
		}
	}
	for name, repo := range repositories {
		if ref := repo.Spec.SecretRef; ref != nil && !secrets[ref.Name] {
			t.Errorf("sample %s: there is no Secret %s", name, ref.Name)
		}
		for _, include := range repo.Spec.Include {
			if _, found := repositories[include.GitRepositoryRef.Name]; !found {
				t.Errorf("sample %s: there is no GitRepository %s", name, include.GitRepositoryRef.Name)
			}
		}
	}
}

// TestSamplesCoverTheSpec: every way of selecting a revision, of authenticating, and of shaping the artifact.
func TestSamplesCoverTheSpec(t *testing.T) {
	t.Parallel()
	covered := map[string]bool{}
	for _, object := range build(t, "samples") {
		if object.GetKind() == "Secret" {
			for key := range as[corev1.Secret](t, object).StringData {
				covered["key "+key] = true
			}
			continue
		}
		spec := as[sourcev1.GitRepository](t, object).Spec
		if ref := spec.Reference; ref != nil {
			covered["branch"] = covered["branch"] || ref.Branch != ""
			covered["tag"] = covered["tag"] || ref.Tag != ""
			covered["semver"] = covered["semver"] || ref.SemVer != ""
			covered["name"] = covered["name"] || ref.Name != ""
			covered["commit"] = covered["commit"] || ref.Commit != ""
		}
		covered["ignore"] = covered["ignore"] || spec.Ignore != nil
		covered["include"] = covered["include"] || len(spec.Include) > 0
		covered["ssh"] = covered["ssh"] || strings.HasPrefix(spec.URL, "ssh://")
	}
	for _, want := range []string{
		"branch", "tag", "semver", "name", "commit", "ignore", "include", "ssh",
		"key username", "key password", "key bearerToken", "key ca.crt", "key tls.crt", "key tls.key", "key identity", "key known_hosts",
	} {
		if !covered[want] {
			t.Errorf("no sample shows %s", want)
		}
	}
}

// TestEverySampleIsBuilt: a file that the kustomization forgets would never be tried.
func TestEverySampleIsBuilt(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("../../config/samples/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("../../config/samples")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); name != "kustomization.yaml" && !strings.Contains(string(list), "- "+name+"\n") {
			t.Errorf("config/samples/%s is not in the kustomization", name)
		}
	}
}
