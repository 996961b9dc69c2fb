package cli_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/tests/testenv"
)

// TestPagesKnowKindsThatCome: releases bring kinds, and the pages are open for months.
func TestPagesKnowKindsThatCome(t *testing.T) {
	t.Parallel()
	namespace := env.NewNamespace(t)
	tenant := newTenant(t, namespace)
	store(t, namespace, installation("foo", "", fmt.Sprintf("{inventory: {name: foo, members: 1, contents: [{group: %s, version: v1, kind: Gadget, namespaces: [%s], count: 1}]}}", "coming.example.com", namespace)))
	pages := opensShop(t)
	b := pages.logIn(tenant.token)
	graph := "/o/" + installations + "/" + namespace + "/foo/graph?as=list"
	testenv.Eventually(t, "the kind is known to be none", func(context.Context) (bool, string) {
		code, text, _ := b.ask(http.MethodGet, graph, "")
		return code == http.StatusOK && strings.Contains(text, "does not serve"), text
	})
	obj := &unstructured.Unstructured{}
	coming := strings.NewReplacer("example.com", "coming.example.com", "Widget", "Gadget", "widgets", "gadgets").Replace(definition)
	if err := yaml.Unmarshal([]byte(coming), &obj.Object); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Client.Delete(context.WithoutCancel(t.Context()), obj) })
	testenv.Eventually(t, "the kind is known", func(context.Context) (bool, string) {
		_, text, _ := b.ask(http.MethodGet, graph, "")
		return strings.Contains(text, "forbidden") && strings.Contains(text, "gadgets"), text
	})
}
