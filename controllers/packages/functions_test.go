package packages_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/extension/extensiontest"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/kpt/wasm"
	"sluice.dev/sluice/internal/kpt/wasm/wasmtest"
)

const question = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: question # why?\ndata:\n    b: \"what?\" # is it?\n    a: x\n"

// TestFunctionsThatPackagesBring: a module runs once somebody has signed it whom operators trust, and not before.
func TestFunctionsThatPackagesBring(t *testing.T) {
	t.Parallel()
	world := extensiontest.New(t, wasm.Options{})
	s := newScene(t, func(p *plane) { p.renderer = function.New(function.Options{Custom: world}) })
	shout := world.PublishSigned(t, "functions/shout", wasmtest.Replace('?', '!'))
	unsigned := world.Publish("functions/late", wasmtest.Replace('?', '.'))
	foreign := world.PublishSigned(t, "elsewhere/foreign", wasmtest.Replace('?', '.'))
	if err := world.Allow(world.Policy(t, "functions/*")); err != nil {
		t.Fatal(err)
	}
	by := func(image string) func(*packagesv1.PackageVariantSpec) {
		return func(spec *packagesv1.PackageVariantSpec) {
			spec.Pipeline = &packagesv1.Pipeline{Mutators: []packagesv1.Function{{Image: image}}}
		}
	}
	begin := func(name, image string) *story {
		one := s.story(t, name)
		one.release("v1", "1.0.0", map[string]string{"question.yaml": question})
		one.begin(by(image))
		return one
	}
	signed, late, other := begin("signed", shout), begin("late", unsigned), begin("other", foreign)

	signed.settle()
	want := strings.Replace(question, `"what?"`, `"what!"`, 1)
	if diff := cmp.Diff(want, signed.open("question.yaml")); diff != "" {
		t.Errorf("what the function did not change has to stay as it was (-want +got):\n%s", diff)
	}
	late.settle()
	late.stalls(packagesv1.FunctionUntrustedReason, "late (", "the function is not trusted", "no signature found: sign the artifact and push the signature beside it")
	_, pinned, _ := strings.Cut(unsigned, "@")
	world.Sign(t, "functions/late", digest.Digest(pinned), world.Key)
	late.settle()
	until(s.plane, late.v, "what is signed by now is tried when somebody asks", func(v *packagesv1.PackageVariant) (bool, string) {
		return v.Status.Change != nil, said(v)
	})
	late.has(late.open("question.yaml"), `"what."`)

	other.settle()
	other.stalls(packagesv1.UnknownFunctionReason, "foreign", "operators have to allow", "/elsewhere/foreign in the ConfigMap sluice-system/functions")
	if err := world.Allow(world.Policy(t, "functions/*") + strings.TrimPrefix(world.Policy(t, "elsewhere/*"), "functions:\n")); err != nil {
		t.Fatal(err)
	}
	if err := s.shared.FunctionsChanged(t.Context(), env.Client); err != nil {
		t.Fatal(err)
	}
	until(s.plane, other.v, "what operators allow by now is tried by itself", func(v *packagesv1.PackageVariant) (bool, string) {
		return v.Status.Change != nil, said(v)
	})
	other.has(other.open("question.yaml"), `"what."`)
}

// stalls tells whether the variant stands still for the reason, with the words.
func (s *story) stalls(reason string, words ...string) {
	s.Helper()
	if !conditions.IsStalled(s.v) || conditions.GetReason(s.v, "Ready") != reason {
		s.Errorf("want a variant that is stalled because of %s: %s", reason, said(s.v))
	}
	s.has(conditions.GetMessage(s.v, "Ready"), words...)
	s.has(conditions.GetMessage(s.v, packagesv1.RenderedCondition), words...)
}
