package source_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	controllers "sluice.dev/sluice/controllers/source"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/bucket"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/source"
	bucketsource "sluice.dev/sluice/internal/source/bucket"
	"sluice.dev/sluice/internal/source/sourcetest"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/storage/local/localtest"
	"sluice.dev/sluice/storage/retention"
	"sluice.dev/sluice/tests/upstream/buckets"
)

// bucketPlane is the controller of Buckets without its manager, before a fake storage.
type bucketPlane struct {
	t          *testing.T
	namespace  string
	fake       *buckets.Fake
	events     *emitted
	store      *localtest.Store
	reconciler reconcile.Reconciler
	writes     int
}

func newBucketPlane(t *testing.T) *bucketPlane {
	t.Helper()
	p := &bucketPlane{t: t, namespace: env.NewNamespace(t), fake: buckets.New(t), events: &emitted{}}
	clock := clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0))
	p.store = localtest.Open(t, local.Options{Now: clock.Now, Retention: retention.Policy{TTL: time.Minute, Records: 2}})
	base, err := client.NewWithWatch(env.Config, client.Options{Scheme: env.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	counting := interceptor.NewClient(base, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			p.writes++
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
	connections := transport.New(transport.Options{AllowLoopback: true})
	opener := bucketsource.NewOpener(bucketsource.Options{
		Clients:     bucket.New(bucket.Options{Transport: connections, GoogleEndpoint: p.fake.URL()}),
		Credentials: auth.New(counting, auth.Options{Transport: connections}), Stored: p.store, Dir: controllers.BucketDir,
		Cache: bucket.NewCache(t.TempDir(), 1<<20), TempDir: t.TempDir(), IndexDir: t.TempDir(),
	})
	p.reconciler = controllers.NewBucketReconciler(controllers.Shared{
		Shell: kernel.Shell{
			Client: counting, Reader: counting, Events: p.events, FieldOwner: "source-controller", RequeueDependency: 30 * time.Second,
			Jitter: func(d time.Duration) time.Duration { return d }, Clock: clock, Durations: noDurations{}, Workers: 4,
		},
		Pipeline: &source.Pipeline{Store: p.store, Clock: clock, Observer: sourcetest.Silent{}},
		Address:  "artifacts.example.com",
		Backoff:  kernel.NewBackoff(time.Millisecond, time.Minute),
	}, opener)
	return p
}

func (p *bucketPlane) create(change func(*sourcev1.BucketSpec)) {
	p.t.Helper()
	obj := &sourcev1.Bucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "app"},
		Spec: sourcev1.BucketSpec{
			BucketName: buckets.Bucket, Endpoint: p.fake.Endpoint(), Insecure: true, Interval: metav1.Duration{Duration: 10 * time.Minute},
		},
	}
	if change != nil {
		change(&obj.Spec)
	}
	if err := env.Client.Create(p.t.Context(), obj); err != nil {
		p.t.Fatal(err)
	}
}

func (p *bucketPlane) secret(name string, data map[string]string) {
	p.t.Helper()
	obj := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name}, StringData: data}
	if err := env.Client.Create(p.t.Context(), obj); err != nil {
		p.t.Fatal(err)
	}
}

// reconcile returns the object as it is then.
func (p *bucketPlane) reconcile() (*sourcev1.Bucket, ctrl.Result, error) {
	p.t.Helper()
	key := client.ObjectKey{Namespace: p.namespace, Name: "app"}
	result, err := p.reconciler.Reconcile(p.t.Context(), ctrl.Request{NamespacedName: key})
	obj := &sourcev1.Bucket{}
	if err := env.Client.Get(p.t.Context(), key, obj); err != nil {
		p.t.Fatal(err)
	}
	return obj, result, err
}

func (p *bucketPlane) succeed() *sourcev1.Bucket {
	p.t.Helper()
	obj, result, err := p.reconcile()
	if err != nil || result.RequeueAfter != 10*time.Minute {
		p.t.Fatalf("got %+v, %v; status %+v", result, err, obj.Status)
	}
	return obj
}

func bucketSummary(obj *sourcev1.Bucket) map[string]string {
	found := map[string]string{}
	for _, c := range obj.Status.Conditions {
		found[c.Type] = string(c.Status) + " " + c.Reason + ": " + c.Message
	}
	return found
}

func TestBucketBecomesArtifact(t *testing.T) {
	t.Parallel()
	p := newBucketPlane(t)
	p.fake.Put(map[string]string{"a.yaml": "a: 1", "b/c.yaml": "c: 1", "notes.md": "no"})
	p.create(func(spec *sourcev1.BucketSpec) { spec.Ignore = new("*.md\n") })
	obj := p.succeed()
	revision := obj.Status.Artifact.Revision
	message := "True Succeeded: stored artifact: revision '" + revision + "'"
	if diff := cmp.Diff(map[string]string{"Ready": message, "ArtifactInStorage": message}, bucketSummary(obj)); diff != "" {
		t.Errorf("conditions: -want +got:\n%s", diff)
	}
	path := fmt.Sprintf("bucket/%s/app/%s.tar.gz", p.namespace, strings.TrimPrefix(revision, "sha256:"))
	if obj.Status.Artifact.Path != path || obj.Status.URL != "http://artifacts.example.com/bucket/"+p.namespace+"/app/latest.tar.gz" {
		t.Errorf("got %+v, %s", obj.Status.Artifact, obj.Status.URL)
	}
	if *obj.Status.ObservedIgnore != "*.md\n" || obj.Status.ObservedGeneration != obj.Generation || obj.Status.ContentConfigChecksum == "" || p.writes != 2 {
		t.Errorf("%d writes, status %+v", p.writes, obj.Status)
	}
	if diff := cmp.Diff([]string{"Normal NewArtifact: stored artifact with 2 fetched files from 'objects' bucket"}, p.events.take()); diff != "" {
		t.Errorf("events: -want +got:\n%s", diff)
	}

	writes := p.writes
	p.fake.Take()
	again := p.succeed()
	if p.writes != writes || again.ResourceVersion != obj.ResourceVersion || len(p.events.take()) != 0 || len(p.fake.Take()) != 1 {
		t.Error("nothing is new, and something was written, told, or asked beside the listing")
	}

	obj.Spec.Ignore = new("*.md\n# the same\n")
	if err := env.Client.Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	if same := p.succeed(); *same.Status.ObservedIgnore != "*.md\n" || same.Status.ObservedGeneration != same.Generation || same.Status.Artifact.Path != path {
		t.Errorf("rules that select the same built something: %+v", same.Status)
	}
}

// TestWhoWasKilledBeforeHisReportHasChangedTheRules: the artifact is stored by then, and the next one has nothing to store.
func TestWhoWasKilledBeforeHisReportHasChangedTheRules(t *testing.T) {
	t.Parallel()
	p := newBucketPlane(t)
	p.fake.Put(map[string]string{"a.yaml": "a: 1", "notes.md": "no"})
	p.create(nil)
	before := p.succeed()
	before.Spec.Ignore = new("*.md\n")
	if err := env.Client.Update(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	after := p.succeed()
	unreported := after.DeepCopy()
	unreported.Status = before.Status
	if err := env.Client.Status().Update(t.Context(), unreported); err != nil {
		t.Fatal(err)
	}
	p.events.take()
	again := p.succeed()
	// The two reports may lie on both sides of a second.
	if diff := cmp.Diff(after.Status, again.Status, cmpopts.IgnoreTypes(metav1.Time{})); diff != "" {
		t.Errorf("status: -reported at once +reported by the next one:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Normal NewArtifact: stored artifact with 1 fetched files from 'objects' bucket"}, p.events.take()); diff != "" {
		t.Errorf("events: -want +got:\n%s", diff)
	}
}

// TestBucketConditions: every reason and message of a Bucket that fails, and whether it is tried again.
func TestBucketConditions(t *testing.T) {
	t.Parallel()
	ref := func(name string) *meta.LocalObjectReference { return &meta.LocalObjectReference{Name: name} }
	refuse := func(kind string, status int, code string) buckets.Fault {
		return func(w http.ResponseWriter, r buckets.Request) bool {
			if r.Kind == kind {
				buckets.Refuse(w, status, code, "no")
			}
			return r.Kind == kind
		}
	}
	laterPage := func(w http.ResponseWriter, r buckets.Request) bool {
		if r.URL.Query().Get("continuation-token") == "" {
			return false
		}
		buckets.Refuse(w, http.StatusForbidden, "AccessDenied", "no")
		return true
	}
	for name, tc := range map[string]struct {
		spec    func(*sourcev1.BucketSpec)
		fault   buckets.Fault
		reason  string
		message string
		stalled bool
	}{
		"Missing": {
			func(s *sourcev1.BucketSpec) { s.BucketName = "elsewhere" }, nil, "BucketOperationFailed", "bucket 'elsewhere' not found", false,
		},
		"Refused": {nil, refuse("list", 403, "AccessDenied"), "BucketOperationFailed", "failed to confirm existence of 'objects' bucket: the storage answers 403 Forbidden AccessDenied", false},
		"Unreachable": {
			func(s *sourcev1.BucketSpec) { s.Endpoint = "127.0.0.1:1" }, nil, "BucketOperationFailed", "failed to confirm existence of 'objects' bucket: ", false,
		},
		"Listing": {
			nil, laterPage, "BucketOperationFailed",
			"indexation of objects from bucket 'objects' failed: listing objects from bucket 'objects' failed: the storage answers 403", false,
		},
		"Object": {nil, refuse("get", 403, "AccessDenied"), "BucketOperationFailed", "fetch from bucket 'objects' failed: failed to get '", false},
		"Ignore": {
			func(s *sourcev1.BucketSpec) { s.Prefix = "a" },
			func(w http.ResponseWriter, r buckets.Request) bool {
				return r.URL.Query().Get("prefix") == ".sourceignore" && refuse("list", 500, "InternalError")(w, r)
			},
			"BucketOperationFailed", "failed to get Etag for '.sourceignore' object: the storage answers 500", false,
		},
		"Rules":    {func(s *sourcev1.BucketSpec) { s.Ignore = new(strings.Repeat("x", 1<<16)) }, nil, "SourceIgnoreError", "read ignore rules: ", false},
		"Endpoint": {func(s *sourcev1.BucketSpec) { s.Endpoint = "https://host/path" }, nil, "BucketOperationFailed", "spec of bucket 'objects' is not usable: ", false},
		"NoSecret": {func(s *sourcev1.BucketSpec) { s.SecretRef = ref("gone") }, nil, "AuthenticationFailed", "failed to get secret '%[1]s/gone': ", false},
		"NoKeys": {
			func(s *sourcev1.BucketSpec) { s.SecretRef = ref("none") }, nil, "AuthenticationFailed", "invalid 'none' secret data: required fields 'accesskey' and 'secretkey'", false,
		},
		"NoTLS":   {func(s *sourcev1.BucketSpec) { s.CertSecretRef = ref("none") }, nil, "AuthenticationFailed", "failed to get TLS config: ", false},
		"NoProxy": {func(s *sourcev1.BucketSpec) { s.ProxySecretRef = ref("none") }, nil, "AuthenticationFailed", "failed to get proxy URL: ", false},
		"NoSTSUser": {
			func(s *sourcev1.BucketSpec) {
				s.STS = &sourcev1.BucketSTSSpec{Provider: "ldap", Endpoint: "https://sts.example.com", SecretRef: ref("none")}
			},
			nil, "AuthenticationFailed", "invalid 'none' secret data for 'ldap' STS provider: required fields username, password", false,
		},
		"STSURL": {
			func(s *sourcev1.BucketSpec) {
				s.STS = &sourcev1.BucketSTSSpec{Provider: "ldap", Endpoint: "https://%zz"}
			},
			nil, "URLInvalid", "failed to parse STS endpoint: ", true,
		},
		"KeyFile": {
			func(s *sourcev1.BucketSpec) { s.Provider, s.SecretRef = "gcp", ref("none") },
			nil, "AuthenticationFailed", "invalid 'none' secret data: required fields 'serviceaccount'", false,
		},
		"Azure": {
			func(s *sourcev1.BucketSpec) { s.Provider, s.SecretRef = "azure", ref("none") },
			nil, "AuthenticationFailed", "invalid 'none' secret data: requires a 'clientId' or 'accountKey' field, ", false,
		},
		"Gate": {
			func(s *sourcev1.BucketSpec) { s.Provider, s.ServiceAccountName = "gcp", "default" }, nil, "FeatureGateDisabled", "spec.serviceAccountName makes ", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newBucketPlane(t)
			p.secret("none", map[string]string{"other": "value"})
			if err := env.Client.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "default"}}); err != nil {
				t.Log(err) // The controller manager may have made it.
			}
			p.fake.PageSize(2)
			p.fake.Put(map[string]string{"a": "1", "ab": "2", "abc": "3"})
			p.fake.Always(tc.fault)
			p.create(tc.spec)
			obj, result, _ := p.reconcile()
			message := tc.message
			if strings.Contains(message, "%[1]s") {
				message = fmt.Sprintf(message, p.namespace)
			}
			found := bucketSummary(obj)
			want := "True " + tc.reason + ": " + message
			if got := found["FetchFailed"]; !strings.HasPrefix(got, want) || strings.Contains(got, t.TempDir()[:8]) {
				t.Errorf("want %q, got %q", want, got)
			}
			if !strings.HasPrefix(found["Ready"], "False "+tc.reason) || (found["Stalled"] != "") != tc.stalled || tc.stalled && result.RequeueAfter > 0 {
				t.Errorf("got %+v, %v", result, found)
			}
			told := p.events.take()
			if len(told) != 1 || !strings.HasPrefix(told[0], "Warning "+tc.reason+": "+message) {
				t.Errorf("told %q", told)
			}
		})
	}
}

// TestARecoveryOfABucketIsTold, with the number of files, though none was fetched.
func TestARecoveryOfABucketIsTold(t *testing.T) {
	t.Parallel()
	p := newBucketPlane(t)
	p.fake.Put(map[string]string{"a": "1", "b": "2"})
	p.create(nil)
	first := p.succeed()
	p.fake.Always(func(w http.ResponseWriter, _ buckets.Request) bool {
		buckets.Refuse(w, http.StatusServiceUnavailable, "SlowDown", "later")
		return true
	})
	failed, _, _ := p.reconcile()
	if failed.Status.Artifact == nil || bucketSummary(failed)["ArtifactInStorage"] == "" {
		t.Errorf("the artifact is gone: %+v", failed.Status)
	}
	p.fake.Heal()
	p.events.take()
	if again := p.succeed(); again.Status.Artifact.Digest != first.Status.Artifact.Digest {
		t.Error("it was built again")
	}
	if diff := cmp.Diff([]string{"Normal Succeeded: stored artifact with 2 fetched files from 'objects' bucket"}, p.events.take()); diff != "" {
		t.Errorf("events: -want +got:\n%s", diff)
	}
}

// TestANewRevisionOfABucketIsAnnounced before it is fetched.
func TestANewRevisionOfABucketIsAnnounced(t *testing.T) {
	t.Parallel()
	p := newBucketPlane(t)
	p.fake.Put(map[string]string{"a": "1"})
	p.create(nil)
	p.succeed()
	p.fake.Put(map[string]string{"a": "2"})
	var meanwhile map[string]string
	p.fake.Always(func(_ http.ResponseWriter, r buckets.Request) bool {
		if r.Kind == "get" && meanwhile == nil {
			obj := &sourcev1.Bucket{}
			if err := env.Client.Get(t.Context(), client.ObjectKey{Namespace: p.namespace, Name: "app"}, obj); err == nil {
				meanwhile = bucketSummary(obj)
			}
		}
		return false
	})
	obj := p.succeed()
	want := "True NewRevision: new upstream revision '" + obj.Status.Artifact.Revision + "'"
	if meanwhile["ArtifactOutdated"] != want || meanwhile["ArtifactInStorage"] == "" || !strings.HasPrefix(meanwhile["Reconciling"], "True Progressing: building artifact: new upstream revision") {
		t.Errorf("got %v", meanwhile)
	}
}

// TestAnEmptySelectionWarns once, where there was something before.
func TestAnEmptySelectionWarns(t *testing.T) {
	t.Parallel()
	p := newBucketPlane(t)
	p.fake.Put(map[string]string{"a": "1"})
	p.create(nil)
	p.succeed()
	p.events.take()
	p.fake.Clear()
	p.succeed()
	want := []string{
		"Normal NewArtifact: stored artifact with 0 fetched files from 'objects' bucket",
		"Warning EmptySelection: no object of the bucket is selected any more: the artifact is empty",
	}
	if diff := cmp.Diff(want, p.events.take()); diff != "" {
		t.Errorf("events: -want +got:\n%s", diff)
	}
	p.succeed()
	if told := p.events.take(); len(told) != 0 {
		t.Errorf("told again: %q", told)
	}
}

// TestBucketsThatTheSchemaRefuses: each rule of the schema, with Flux's message.
func TestBucketsThatTheSchemaRefuses(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	ref := &meta.LocalObjectReference{Name: "s"}
	sts := func(provider string) *sourcev1.BucketSTSSpec {
		return &sourcev1.BucketSTSSpec{Provider: provider, Endpoint: "https://sts"}
	}
	withSecret, withCert := sts("aws"), sts("aws")
	withSecret.SecretRef, withCert.CertSecretRef = ref, ref
	for message, spec := range map[string]sourcev1.BucketSpec{
		"STS configuration is only supported for the 'aws' and 'generic' Bucket providers": {Provider: "gcp", STS: sts("aws")},
		"'aws' is the only supported STS provider for the 'aws' Bucket provider":           {Provider: "aws", STS: sts("ldap")},
		"'ldap' is the only supported STS provider for the 'generic' Bucket provider":      {Provider: "generic", STS: sts("aws")},
		"spec.sts.secretRef is not required for the 'aws' STS provider":                    {Provider: "aws", STS: withSecret},
		"spec.sts.certSecretRef is not required for the 'aws' STS provider":                {Provider: "aws", STS: withCert},
		"ServiceAccountName is not supported for the 'generic' Bucket provider":            {ServiceAccountName: "a"},
		"cannot set both .spec.secretRef and .spec.serviceAccountName":                     {Provider: "aws", ServiceAccountName: "a", SecretRef: ref},
		`spec.sts.endpoint: Invalid value: "ftp://sts"`:                                    {STS: &sourcev1.BucketSTSSpec{Provider: "ldap", Endpoint: "ftp://sts"}},
		`Unsupported value: "ibm": supported values: "generic", "aws", "gcp", "azure"`:     {Provider: "ibm"},
	} {
		spec.BucketName, spec.Endpoint, spec.Interval = "b", "e", metav1.Duration{Duration: time.Minute}
		obj := &sourcev1.Bucket{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "refused"}, Spec: spec}
		if err := env.Client.Create(t.Context(), obj); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("want %q, got %v", message, err)
		}
	}
}

// TestForeignExternalArtifactsAreLeftAlone: the API server serves the kind, and takes what its makers write.
func TestForeignExternalArtifactsAreLeftAlone(t *testing.T) {
	t.Parallel()
	obj := &sourcev1.ExternalArtifact{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.NewNamespace(t), Name: "foreign"},
		Spec:       sourcev1.ExternalArtifactSpec{SourceRef: &meta.NamespacedObjectKindReference{Kind: "Maker", Name: "m"}},
	}
	if err := env.Client.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	obj.Status.Artifact = &meta.Artifact{
		Path: "maker/x.tar.gz", URL: "http://maker/x.tar.gz", Revision: "v1@sha256:" + strings.Repeat("0", 64),
		Digest: "sha256:" + strings.Repeat("0", 64), LastUpdateTime: metav1.NewTime(time.Unix(1, 0)),
	}
	if err := env.Client.Status().Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	for _, kind := range controllers.Kinds() {
		if kind.Name == sourcev1.ExternalArtifactKind {
			t.Error("a controller is there for it")
		}
	}
}
