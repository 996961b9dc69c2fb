package function

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"sluice.dev/sluice/internal/schema"
	"sluice.dev/sluice/tests/openapi"
)

// schemas are those of some of Kubernetes' kinds.
func schemas(t *testing.T) Schemas {
	t.Helper()
	return schema.NewServer(http.DefaultClient, openapi.Serve(t).URL, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
}

const widgets = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n"

// TestWhatIsKeptIsGoodForItsSchemasAlone is the difference between these functions and all others: what they say depends on the
// server as well.
func TestWhatIsKeptIsGoodForItsSchemasAlone(t *testing.T) {
	t.Parallel()
	upstream, clock := openapi.Serve(t), clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	kept := 0
	r := New(Options{
		Schemas: schema.NewServer(http.DefaultClient, upstream.URL, clock),
		Observe: func(isKnown bool, _ error) {
			if isKnown {
				kept++
			}
		},
	})
	p := packageOf("Kptfile", kptfileOf("image: kubeconform"), "a.yaml", widgets, "b.yaml", configMap)
	step := func(what, text string, want error, wantKept int) {
		t.Helper()
		if upstream.Set("apis/example.com/v1", []byte(text)); text == "" {
			upstream.Set("apis/example.com/v1", nil)
		}
		clock.SetTime(clock.Now().Add(time.Minute))
		if _, _, err := r.Render(t.Context(), p); !errors.Is(err, want) || kept != wantKept {
			t.Errorf("%s: %v, and %d were kept", what, err, kept)
		}
	}
	const good = `{"components":{"schemas":{"w":{"type":"object","x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"Widget"}]}}}}`
	step("not there", "", ErrUnknownKind, 0)
	step("there", good, nil, 0)
	step("still there", good, nil, 1)
	step("another one", strings.Replace(good, `"type":"object"`, `"type":"object","description":"x"`, 1), nil, 1)
	step("gone", "", ErrUnknownKind, 1)
	step("there again", good, nil, 1)
	upstream.Answer(http.StatusServiceUnavailable)
	step("not told", good, ErrSchemas, 1)
	upstream.Answer(0)
	step("told", good, nil, 2)
}

// TestWhoValidatesNothingNeedsNoServer is so for packages without the function.
func TestWhoValidatesNothingNeedsNoServer(t *testing.T) {
	t.Parallel()
	upstream := openapi.Serve(t)
	r := New(Options{Schemas: schema.NewServer(http.DefaultClient, upstream.URL, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))})
	for range 2 {
		if _, _, err := r.Render(t.Context(), packageOf("Kptfile", kptfileOf("{image: set-labels, configMap: {a: b}}"), "a.yaml", configMap)); err != nil {
			t.Fatal(err)
		}
	}
	if asked := upstream.Asked(); len(asked) > 0 {
		t.Error(asked)
	}
}

// TestAFieldThatDoesNotFitIsNoUnknownKind because waiting does not help there.
func TestAFieldThatDoesNotFitIsNoUnknownKind(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		objects string
		want    bool
	}{
		"one unknown": {widgets, true}, "two unknown": {widgets + "---\n" + strings.ReplaceAll(widgets, "Widget", "Gadget"), true},
		"both": {widgets + "---\n" + configMap + "data: {a: 1}\n", false}, "one that does not fit": {configMap + "data: {a: 1}\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := New(Options{Schemas: schemas(t)}).Render(t.Context(), packageOf("Kptfile", kptfileOf("image: kubeval"), "a.yaml", c.objects))
			if err == nil || errors.Is(err, ErrUnknownKind) != c.want {
				t.Error(err)
			}
		})
	}
}

// TestFindingsAreBounded in number and in length, and never show values.
func TestFindingsAreBounded(t *testing.T) {
	t.Parallel()
	objects := strings.Repeat(configMap+"data: {password: {hidden: geheim}}\n---\n", 300)
	_, _, err := New(Options{Schemas: schemas(t)}).Render(t.Context(), packageOf("Kptfile", kptfileOf("image: kubeconform"), "a.yaml", objects))
	if err == nil || len(err.Error()) > maxMessage+10 || !strings.Contains(err.Error(), "at least 20 findings") || strings.Contains(err.Error(), "geheim") {
		t.Error(err)
	}
}

// TestADefinitionThatAsksForTooMuchIsRefused as anybody may write one into a package.
func TestADefinitionThatAsksForTooMuchIsRefused(t *testing.T) {
	t.Parallel()
	wide := "{allOf: [" + strings.Repeat("{}, ", 2000) + "{}]}"
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: c}\nspec:\n  group: example.com\n  names: {kind: Widget}\n" +
		"  versions:\n  - name: v1\n    schema:\n      openAPIV3Schema:\n        additionalProperties: {items: " + wide + "}\n"
	object := widgets + "a: [" + strings.Repeat("1, ", 20_000) + "1]\n"
	p := packageOf("Kptfile", kptfileOf("{image: kubeconform, configMap: {skip_kinds: CustomResourceDefinition}}"), "a.yaml", object, "c.yaml", crd)
	if _, _, err := New(Options{Timeout: time.Hour}).Render(t.Context(), p); !errors.Is(err, schema.ErrTooMuch) || !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

// TestWhatIsMadeOnceMoreIsNotValidated so that it does not depend on what the cluster has become.
func TestWhatIsMadeOnceMoreIsNotValidated(t *testing.T) {
	t.Parallel()
	r := New(Options{Schemas: schemas(t)})
	kptfile := kptfileOf("{image: set-labels, configMap: {a: b}}") + "  validators:\n  - image: kubeconform\n"
	p := packageOf("Kptfile", kptfile, "a.yaml", widgets)
	for range 2 {
		got, results, err := r.Render(WithoutValidators(t.Context()), p)
		if err != nil || len(results) != 1 || !strings.Contains(string(got["a.yaml"].Content), "labels") {
			t.Errorf("%v %v", results, err)
		}
		if _, _, err := r.Render(t.Context(), p); !errors.Is(err, ErrUnknownKind) {
			t.Error(err)
		}
	}
}
