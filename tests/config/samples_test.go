package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	extensionsv1 "sluice.dev/sluice/api/extensions/v1beta1"
	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// samples are the objects under config/samples, by kind and name.
type samples struct {
	git           map[string]sourcev1.GitRepository
	oci           map[string]sourcev1.OCIRepository
	buckets       map[string]sourcev1.Bucket
	helm          map[string]sourcev1.HelmRepository
	charts        map[string]sourcev1.HelmChart
	generators    map[string]extensionsv1.ArtifactGenerator
	templates     map[string]modulesv1.ModuleTemplate
	modules       map[string]modulesv1.Module
	installations map[string]modulesv1.ModuleInstallation
	repositories  map[string]packagesv1.Repository
	variants      map[string]packagesv1.PackageVariant
	sets          map[string]packagesv1.PackageVariantSet
	secrets       map[string]corev1.Secret
	accounts      map[string]bool
}

func readSamples(t *testing.T) samples {
	t.Helper()
	s := samples{
		git: map[string]sourcev1.GitRepository{}, oci: map[string]sourcev1.OCIRepository{}, helm: map[string]sourcev1.HelmRepository{}, charts: map[string]sourcev1.HelmChart{}, generators: map[string]extensionsv1.ArtifactGenerator{}, buckets: map[string]sourcev1.Bucket{},
		templates: map[string]modulesv1.ModuleTemplate{}, modules: map[string]modulesv1.Module{},
		installations: map[string]modulesv1.ModuleInstallation{},
		repositories:  map[string]packagesv1.Repository{}, variants: map[string]packagesv1.PackageVariant{},
		sets:    map[string]packagesv1.PackageVariantSet{},
		secrets: map[string]corev1.Secret{}, accounts: map[string]bool{},
	}
	for _, object := range build(t, "samples") {
		switch object.GetKind() {
		case "Secret":
			s.secrets[object.GetName()] = as[corev1.Secret](t, object)
		case "ServiceAccount":
			s.accounts[object.GetName()] = true
		case "RoleBinding":
			as[rbacv1.RoleBinding](t, object)
		case "ClusterRole":
			as[rbacv1.ClusterRole](t, object)
		case "ClusterRoleBinding":
			as[rbacv1.ClusterRoleBinding](t, object)
		case sourcev1.GitRepositoryKind:
			s.git[object.GetName()] = as[sourcev1.GitRepository](t, object)
		case sourcev1.OCIRepositoryKind:
			s.oci[object.GetName()] = as[sourcev1.OCIRepository](t, object)
		case sourcev1.BucketKind:
			s.buckets[object.GetName()] = as[sourcev1.Bucket](t, object)
		case sourcev1.HelmRepositoryKind:
			s.helm[object.GetName()] = as[sourcev1.HelmRepository](t, object)
		case sourcev1.HelmChartKind:
			s.charts[object.GetName()] = as[sourcev1.HelmChart](t, object)
		case extensionsv1.ArtifactGeneratorKind:
			s.generators[object.GetName()] = as[extensionsv1.ArtifactGenerator](t, object)
		case modulesv1.ModuleTemplateKind:
			s.templates[object.GetName()] = as[modulesv1.ModuleTemplate](t, object)
		case modulesv1.ModuleKind:
			s.modules[object.GetName()] = as[modulesv1.Module](t, object)
		case modulesv1.ModuleInstallationKind:
			s.installations[object.GetName()] = as[modulesv1.ModuleInstallation](t, object)
		case packagesv1.RepositoryKind:
			s.repositories[object.GetName()] = as[packagesv1.Repository](t, object)
		case packagesv1.PackageVariantKind:
			s.variants[object.GetName()] = as[packagesv1.PackageVariant](t, object)
		case packagesv1.PackageVariantSetKind:
			s.sets[object.GetName()] = as[packagesv1.PackageVariantSet](t, object)
		default:
			t.Errorf("%s %s is no sample of ours", object.GetKind(), object.GetName())
		}
	}
	return s
}

// TestSamplesAreWhole: each is an object of the API without a field too many, and what it refers to is there.
func TestSamplesAreWhole(t *testing.T) {
	t.Parallel()
	s := readSamples(t)
	secret := func(sample string, refs ...*meta.LocalObjectReference) {
		for _, ref := range refs {
			if _, found := s.secrets[refName(ref)]; ref != nil && !found {
				t.Errorf("sample %s: there is no Secret %s", sample, ref.Name)
			}
		}
	}
	for name, repo := range s.git {
		secret(name, repo.Spec.SecretRef, repo.Spec.ProxySecretRef)
		if verify := repo.Spec.Verification; verify != nil {
			secret(name, &verify.SecretRef)
		}
		for _, include := range repo.Spec.Include {
			if _, found := s.git[include.GitRepositoryRef.Name]; !found {
				t.Errorf("sample %s: there is no GitRepository %s", name, include.GitRepositoryRef.Name)
			}
		}
	}
	for name, repo := range s.helm {
		secret(name, repo.Spec.SecretRef, repo.Spec.CertSecretRef)
	}
	for name, chart := range s.charts {
		_, isHelm := s.helm[chart.Spec.SourceRef.Name]
		_, isGit := s.git[chart.Spec.SourceRef.Name]
		if isHelm != (chart.Spec.SourceRef.Kind == sourcev1.HelmRepositoryKind) || !isHelm && !isGit {
			t.Errorf("sample %s: there is no %s %s", name, chart.Spec.SourceRef.Kind, chart.Spec.SourceRef.Name)
		}
	}
	for name, made := range s.generators {
		for _, from := range made.Spec.Sources {
			if _, isGit := s.git[from.Name]; !isGit || from.Kind != sourcev1.GitRepositoryKind {
				t.Errorf("sample %s: there is no %s %s", name, from.Kind, from.Name)
			}
		}
	}
	for name, repo := range s.oci {
		secret(name, repo.Spec.SecretRef, repo.Spec.CertSecretRef, repo.Spec.ProxySecretRef)
		if verify := repo.Spec.Verify; verify != nil {
			secret(name, verify.SecretRef, verify.TrustedRootSecretRef)
		}
		if account := repo.Spec.ServiceAccountName; account != "" && !s.accounts[account] {
			t.Errorf("sample %s: there is no ServiceAccount %s", name, account)
		}
	}
	for name, bucket := range s.buckets {
		secret(name, bucket.Spec.SecretRef, bucket.Spec.CertSecretRef, bucket.Spec.ProxySecretRef)
		if sts := bucket.Spec.STS; sts != nil {
			secret(name, sts.SecretRef, sts.CertSecretRef)
		}
	}
}

func refName(ref *meta.LocalObjectReference) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}

// TestSamplesCoverTheSpec: every way of selecting a revision, of authenticating, and of shaping the artifact.
func TestSamplesCoverTheSpec(t *testing.T) {
	t.Parallel()
	s := readSamples(t)
	covered := map[string]bool{}
	for _, secret := range s.secrets {
		for key := range secret.StringData {
			covered["key "+key] = true
		}
	}
	for _, repo := range s.git {
		spec := repo.Spec
		if ref := spec.Reference; ref != nil {
			covered["branch"] = covered["branch"] || ref.Branch != ""
			covered["tag"] = covered["tag"] || ref.Tag != ""
			covered["semver"] = covered["semver"] || ref.SemVer != ""
			covered["name"] = covered["name"] || ref.Name != ""
			covered["commit"] = covered["commit"] || ref.Commit != ""
		}
		covered["ignore"] = covered["ignore"] || spec.Ignore != nil
		covered["include"] = covered["include"] || len(spec.Include) > 0
		covered["sparseCheckout"] = covered["sparseCheckout"] || len(spec.SparseCheckout) > 0
		covered["recurseSubmodules"] = covered["recurseSubmodules"] || spec.RecurseSubmodules
		covered["proxy"] = covered["proxy"] || spec.ProxySecretRef != nil
		covered["verify"] = covered["verify"] || spec.Verification != nil
		covered["ssh"] = covered["ssh"] || strings.HasPrefix(spec.URL, "ssh://")
	}
	for _, repo := range s.oci {
		spec := repo.Spec
		if ref := spec.Reference; ref != nil {
			covered["oci tag"] = covered["oci tag"] || ref.Tag != ""
			covered["oci semver"] = covered["oci semver"] || ref.SemVer != ""
			covered["oci digest"] = covered["oci digest"] || ref.Digest != ""
		}
		if verify := spec.Verify; verify != nil {
			covered["verify "+verify.Provider] = true
			covered["verify keyless"] = covered["verify keyless"] || len(verify.MatchOIDCIdentity) > 0
		}
		covered["copy"] = covered["copy"] || spec.LayerSelector != nil && spec.LayerSelector.Operation == sourcev1.OCILayerCopy
		covered["cloud"] = covered["cloud"] || spec.GetProvider() != sourcev1.GenericOCIProvider
	}
	for _, bucket := range s.buckets {
		covered["bucket "+bucket.Spec.GetProvider()] = true
		covered["sts"] = covered["sts"] || bucket.Spec.STS != nil
		covered["prefix"] = covered["prefix"] || bucket.Spec.Prefix != ""
	}
	for _, want := range []string{
		"bucket generic", "bucket aws", "bucket gcp", "bucket azure", "sts", "prefix",
		"key accesskey", "key secretkey", "key serviceaccount", "key sasKey",
		"branch", "tag", "semver", "name", "commit", "ignore", "include", "ssh", "sparseCheckout", "recurseSubmodules", "proxy", "verify",
		"key username", "key password", "key bearerToken", "key ca.crt", "key tls.crt", "key tls.key", "key identity", "key known_hosts",
		"oci tag", "oci semver", "oci digest", "copy", "cloud", "key .dockerconfigjson", "verify cosign", "verify notation", "verify keyless",
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
