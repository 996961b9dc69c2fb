package records_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/controllers/modules/records"
	"sluice.dev/sluice/tests/testenv"
)

// newRecords returns records, a client beside them, and a new record that is not stored yet.
func newRecords(t *testing.T) (*records.Inventories, client.Client, *modulesv1.Inventory) {
	t.Helper()
	scheme := runtime.NewScheme()
	check(t, modulesv1.AddToScheme(scheme))
	api, err := client.New(env.Config, client.Options{Scheme: scheme})
	check(t, err)
	return records.New(api, api, "sluice"), api, &modulesv1.Inventory{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.NewNamespace(t), Name: "foo"},
		Data:       modulesv1.InventoryData{InstallationUID: "uid", Phase: modulesv1.PhaseInstalling},
	}
}

func TestRecordsAreExact(t *testing.T) {
	t.Parallel()
	kept, api, record := newRecords(t)
	load := func() *modulesv1.Inventory {
		t.Helper()
		found, err := kept.Load(t.Context(), record.Namespace, record.Name)
		check(t, err)
		return found
	}
	if found := load(); found != nil {
		t.Errorf("there is none yet: %+v", found)
	}
	check(t, kept.Create(t.Context(), record))
	first := load()
	if diff := cmp.Diff(record, first); diff != "" {
		t.Errorf("what was created: -want +got:\n%s", diff)
	}
	first.Data.Phase = modulesv1.PhaseInstalled
	if again := load(); again.Data.Phase != modulesv1.PhaseInstalling {
		t.Errorf("a change of what was loaded changes the record: %+v", again.Data)
	}
	check(t, kept.Update(t.Context(), first))
	stored := &modulesv1.Inventory{}
	check(t, api.Get(t.Context(), client.ObjectKeyFromObject(record), stored))
	if found := load(); found.ResourceVersion != stored.ResourceVersion || found.Data.Phase != modulesv1.PhaseInstalled {
		t.Errorf("loaded %s in %s, stored is %s", found.ResourceVersion, found.Data.Phase, stored.ResourceVersion)
	}

	// Somebody else writes it: the next write says so, and what is loaded then is what is stored.
	stored.Data.Phase = modulesv1.PhaseUpgrading
	check(t, api.Update(t.Context(), stored))
	if seen, err := kept.Stored(t.Context(), record.Namespace, record.Name); err != nil || seen.Data.Phase != modulesv1.PhaseUpgrading {
		t.Errorf("what another one sees: %+v, %v", seen, err)
	}
	mine := load()
	if err := kept.Update(t.Context(), mine); !apierrors.IsConflict(err) {
		t.Errorf("a write over somebody else's: %v", err)
	}
	if found := load(); found.Data.Phase != modulesv1.PhaseUpgrading {
		t.Errorf("loaded %+v", found.Data)
	}

	check(t, kept.Delete(t.Context(), load()))
	check(t, kept.Delete(t.Context(), record))
	if found := load(); found != nil {
		t.Errorf("it is gone: %+v", found)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(record), stored); !apierrors.IsNotFound(err) {
		t.Errorf("it is stored still: %v", err)
	}
}

// slowReader does something while it reads, after the API server has answered.
type slowReader struct {
	client.Reader
	meanwhile func()
}

func (s *slowReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := s.Reader.Get(ctx, key, obj, opts...)
	if s.meanwhile != nil {
		s.meanwhile()
	}
	return err
}

// TestReadingDoesNotUndoWriting: another installation may look a record up while its own writes it. What that read is
// older than what was written, and must not take its place: an installation without a record is let go of.
func TestReadingDoesNotUndoWriting(t *testing.T) {
	t.Parallel()
	_, api, record := newRecords(t)
	reader := &slowReader{Reader: api}
	kept := records.New(api, reader, "sluice")
	reader.meanwhile = func() {
		reader.meanwhile = nil
		check(t, kept.Create(t.Context(), record))
	}
	if found, err := kept.Load(t.Context(), record.Namespace, record.Name); err != nil || found != nil {
		t.Fatalf("there was none when it was read: %+v, %v", found, err)
	}
	if found, err := kept.Load(t.Context(), record.Namespace, record.Name); err != nil || found == nil {
		t.Errorf("it was created: %+v, %v", found, err)
	}
}

// TestOneNamespace: a process that works for one namespace, and has rights in no other, finds the claims there.
func TestOneNamespace(t *testing.T) {
	t.Parallel()
	_, api, record := newRecords(t)
	record.Labels = map[string]string{"claims.modules.sluice.dev/00": ""}
	check(t, api.Create(t.Context(), record))
	in := metav1.ObjectMeta{Namespace: record.Namespace, Name: "foo"}
	check(t, env.Client.Create(t.Context(), &rbacv1.Role{ObjectMeta: in, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{modulesv1.GroupVersion.Group}, Resources: []string{"inventories"}, Verbs: []string{"get", "list"}},
	}}))
	check(t, env.Client.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: in, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "foo"},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: record.Namespace}},
	}))
	config := rest.CopyConfig(env.Config)
	config.Impersonate.UserName = record.Namespace
	reader, err := client.New(config, client.Options{Scheme: api.Scheme()})
	check(t, err)
	kept := records.New(api, reader, "sluice", record.Namespace)
	testenv.Eventually(t, "the claim is found", func(ctx context.Context) (bool, string) {
		found, err := kept.List(ctx, "", "claims.modules.sluice.dev/00")
		return err == nil && len(found) == 1, fmt.Sprint(err)
	})
}
