package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/engine/cluster"
	"sluice.dev/sluice/tests/testenv"
)

func TestAsRefusesWhatIsNoAccount(t *testing.T) {
	t.Parallel()
	connector, count := connect(t, cluster.Options{})
	for reason, id := range map[string]cluster.Identity{
		"half an identity must not become the controller's own": {Namespace: "tenant"},
		"an account belongs to a namespace":                     {ServiceAccount: "deployer"},
		"a colon would name another kind of user":               {Namespace: "tenant", ServiceAccount: "a:b"},
		"a line break would end the header":                     {Namespace: "tenant", ServiceAccount: "a\nb"},
		"a namespace with a colon":                              {Namespace: "a:b", ServiceAccount: "c"},
	} {
		count.wantCalls(t, map[string]int{}, func() {
			if client, err := connector.As(id); client != nil || !errors.Is(err, cluster.ErrInvalid) {
				t.Errorf("%s: want ErrInvalid, got %v", reason, err)
			}
		})
	}
}

func TestClientsAreRememberedWithinBounds(t *testing.T) {
	t.Parallel()
	connector, count := connect(t, cluster.Options{})
	ask := func(account string) *cluster.Client {
		t.Helper()
		client, err := connector.As(cluster.Identity{Namespace: "tenant", ServiceAccount: account})
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	count.wantCalls(t, map[string]int{}, func() {
		first := ask("a")
		if ask("b"); first != ask("a") {
			t.Error("a client in use is made anew")
		}
		second := ask("b")
		if ask("a"); first != ask("a") || second != ask("b") {
			t.Error("two of two are not remembered")
		}
		for i := range cluster.MaxClients {
			ask(fmt.Sprint("c-", i))
		}
		if first == ask("a") {
			t.Error("more clients are remembered than there is room for")
		}
	})
}

func TestForbiddenSaysWhatToGrant(t *testing.T) {
	t.Parallel()
	connector, count := connect(t, cluster.Options{})
	namespace := env.NewNamespace(t)
	id := cluster.Identity{Namespace: namespace, ServiceAccount: "deployer"}
	subject := as(t, connector, id)
	manifest := configMap(t, namespace, "me", "1")
	count.wantCalls(t, map[string]int{"apply": 1}, func() {
		_, err := subject.Apply(t.Context(), manifest, cluster.ApplyOptions{Manager: manager})
		wantForbidden(t, err, "apply ConfigMap "+namespace+"/subject: system:serviceaccount:"+namespace+":deployer may not patch configmaps in namespace "+namespace+
			": grant it with a Role and a RoleBinding, or name another ServiceAccount")
	})
	_, err := subject.Instances(t.Context(), configMaps.GroupKind(), "", nil)
	wantForbidden(t, err, "may not list configmaps: grant it with a ClusterRole and a ClusterRoleBinding")
	_, err = subject.Get(t.Context(), cluster.Ref{GVK: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), Name: "view"})
	wantForbidden(t, err, "may not get clusterroles.rbac.authorization.k8s.io: grant it with a ClusterRole and a ClusterRoleBinding")

	grant(t, id, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"roles"}, Verbs: []string{"create", "patch"}})
	retry(t, func() error {
		_, err := subject.Apply(t.Context(), manifest, cluster.ApplyOptions{Manager: manager})
		return err
	})
	_, err = subject.Apply(t.Context(), object(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: more, namespace: %s}, rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]}`, namespace),
		cluster.ApplyOptions{Manager: manager})
	wantForbidden(t, err, "attempting to grant RBAC permissions not currently held")
}

func wantForbidden(t *testing.T, err error, words string) {
	t.Helper()
	if !errors.Is(err, cluster.ErrForbidden) {
		t.Errorf("want ErrForbidden, got %v", err)
	}
	wantWords(t, err, words)
}

// grant gives the account the rights in its namespace.
func grant(t *testing.T, id cluster.Identity, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: id.ServiceAccount, Namespace: id.Namespace}, Rules: rules}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: id.ServiceAccount, Namespace: id.Namespace}},
	}
	for _, object := range []client.Object{role, binding} {
		if err := env.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// retry waits until the API server has taken notice of what was just made.
func retry(t *testing.T, try func() error) {
	t.Helper()
	testenv.Eventually(t, "retry", func(context.Context) (bool, string) {
		err := try()
		return err == nil, fmt.Sprint(err)
	})
}

func TestControllerWithoutTheRightToImpersonate(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "controller", Namespace: namespace}}
	if err := env.Client.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	token := &authenticationv1.TokenRequest{}
	if err := env.Client.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(env.Config)
	config.BearerToken = token.Status.Token
	connector, err := cluster.NewConnector(config, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	subject := as(t, connector, cluster.Identity{Namespace: namespace, ServiceAccount: "deployer"})
	_, err = subject.Apply(t.Context(), configMap(t, namespace, "me", "1"), cluster.ApplyOptions{Manager: manager})
	wantForbidden(t, err, "the controller may not impersonate system:serviceaccount:"+namespace+":deployer: grant it the verb impersonate on serviceaccounts")
	subject = as(t, connector, cluster.Identity{})
	_, err = subject.Get(t.Context(), cluster.Ref{GVK: configMaps, Namespace: namespace, Name: "x"})
	wantForbidden(t, err, "the controller's own account may not get configmaps in namespace "+namespace+": grant it with a Role and a RoleBinding")
	config.BearerToken = "expired"
	if connector, err = cluster.NewConnector(config, cluster.Options{}); err != nil {
		t.Fatal(err)
	}
	if subject, err = connector.As(cluster.Identity{}); err != nil {
		t.Fatal(err)
	}
	if _, err := subject.Namespaced(configMaps); !errors.Is(err, cluster.ErrForbidden) {
		t.Errorf("a token that is not accepted: want ErrForbidden, got %v", err)
	}
}
