package variant_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/variant"
)

// counted is a Renderer that counts what it renders.
func counted() (r *function.Renderer, rendered, cached *atomic.Int32) {
	rendered, cached = &atomic.Int32{}, &atomic.Int32{}
	return function.New(function.Options{Observe: func(isKnown bool, _ error) {
		if isKnown {
			cached.Add(1)
		} else {
			rendered.Add(1)
		}
	}}), rendered, cached
}

// copies is a function that looks at Kptfiles: it copies the name, and whose the functions are.
func copies() kpt.Function {
	return kpt.Function{Image: "apply-replacements", ConfigPath: "copies.yaml", Exclude: []kpt.Selector{{Kind: "Kptfile", Name: "db"}}}
}

const copied = `apiVersion: fn.kpt.dev/v1alpha1
kind: ApplyReplacements
metadata:
  name: copies
  annotations:
    config.kubernetes.io/local-config: "true"
replacements:
- source: {kind: Kptfile, fieldPath: metadata.name}
  targets:
  - select: {kind: Deployment}
    fieldPaths: [spec.template.spec.hostname]
    options: {create: true}
- source: {kind: Kptfile, fieldPath: pipeline.mutators.0.name}
  targets:
  - select: {kind: Deployment}
    fieldPaths: [spec.template.spec.subdomain]
    options: {create: true}
`

func TestIdenticalVariantsAreRenderedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason string
		// differs makes the variant of a number differ from the others.
		differs  func(v *variant.Version, n int)
		rendered int32
	}{
		"owner":   {"Whose it is, no function is told.", func(*variant.Version, int) {}, 1},
		"name":    {"None of the functions looks at a Kptfile.", func(v *variant.Version, n int) { v.Config.Package = fmt.Sprintf("eu/web-%d", n) }, 1},
		"upper":   {"Nor does any know of the repository's folders.", func(v *variant.Version, n int) { v.Config.Package = fmt.Sprintf("eu-%d/web", n) }, 1},
		"labels":  {"Functions see labels.", func(v *variant.Version, n int) { v.Config.Labels = map[string]string{"n": fmt.Sprint(n % 2)} }, 2},
		"context": {"It says what the package is called.", func(v *variant.Version, n int) { v.Config.Deployment, v.Config.Package = true, fmt.Sprint("web-", n%2) }, 2},
		"seen": {"A function copies it.", func(v *variant.Version, n int) {
			v.Config.Package, v.Config.Pipeline.Mutators = fmt.Sprint("web-", n%2), []kpt.Function{copies()}
			v.Blueprint.Package["copies.yaml"] = kpt.File{Content: []byte(copied), Mode: 0o644}
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			renderer, rendered, cached := counted()
			for n := range int32(20) {
				v := variant.Version{Blueprint: blueprint(t, "v1"), Config: config()}
				v.Config.Owner.Name, v.Config.Deployment = fmt.Sprintf("web-%d", n), false
				c.differs(&v, int(n))
				outcome, err := variant.Desired(t.Context(), v, "", renderer)
				if err != nil {
					t.Fatal(err)
				}
				if got := string(outcome.Package["Kptfile"].Content); !strings.Contains(got, v.Config.Owner.FunctionName(0, "namespace")+"\n") ||
					!strings.Contains(got, "\n  name: "+path.Base(v.Config.Package)+" #") {
					t.Fatalf("it is not the variant's own:\n%s", got)
				}
			}
			each := (rendered.Load() + cached.Load()) / 20
			if rendered.Load() != c.rendered*each || rendered.Load()+cached.Load() != 20*each {
				t.Errorf("%s\n%d were rendered and %d known; each takes %d", c.reason, rendered.Load(), cached.Load(), each)
			}
		})
	}
}

// alone renders each package as it is, with all names in it, and shares nothing.
type alone struct{ config variant.Config }

func (a alone) Render(ctx context.Context, p kpt.Package) (kpt.Package, []function.Result, error) {
	resources, err := kpt.Open(p)
	if err != nil {
		return nil, nil, err
	}
	kptfile, err := resources.Kptfile("")
	if err != nil {
		return nil, nil, err
	}
	kptfile.SetName(path.Base(a.config.Package))
	if p, err = resources.Package(); err != nil {
		return nil, nil, err
	}
	for name, file := range p {
		file.Content = bytes.ReplaceAll(file.Content, []byte(kpt.Nobody().Mark()), []byte(a.config.Owner.Mark()))
		p[name] = file
	}
	return function.New(function.Options{}).Render(ctx, p)
}

// randomVersion is one of many that differ here and there, with the function of the number.
func randomVersion(t *testing.T, dice *rand.Rand, n int) variant.Version {
	t.Helper()
	pick := func(words ...string) string { return words[dice.IntN(len(words))] }
	v := variant.Version{Blueprint: blueprint(t, pick("v1", "v2")), Config: config()}
	c := &v.Config
	c.Owner = kpt.Owner{Namespace: pick("fleet", "true"), Name: pick("web.eu", "1", "a-rather-long-name-of-a-variant-that-would-be-folded-if-lines-were")}
	c.Package, c.Namespace, c.Deployment = pick("eu/web", "on", "0x10", "us/api", "1.5"), pick("", "shop"), dice.IntN(3) == 0
	name := pick(`name: "web"`, "name: 'web'", "name: web-blueprint")
	if n%4 == 0 {
		c.Annotations, c.Package, name = nil, "eu/web", "name: &web web\n  annotations: {called: *web}"
	}
	v.Blueprint.Package = edited(t, v.Blueprint.Package, []edit{{"Kptfile", "name: web-blueprint", name}})
	c.Pipeline.Mutators = nil
	v.Blueprint.Package["copies.yaml"] = kpt.File{Content: []byte(copied), Mode: 0o644}
	for _, one := range []int{n, dice.IntN(24)} {
		c.Pipeline.Mutators = append(c.Pipeline.Mutators, []kpt.Function{
			{Image: "set-labels", Name: pick("", "two words"), ConfigMap: map[string]string{"site": pick("eu", "us")}},
			{Image: "set-annotations", ConfigMap: map[string]string{"site": "eu"}},
			{Image: "search-replace", ConfigMap: map[string]string{"by-value": "web", "put-value": "shop"}},
			{Image: "starlark", ConfigMap: map[string]string{
				"source": "for o in ctx.resource_list['items']:\n  o['metadata'].setdefault('annotations', {})['all'] = str(len(ctx.resource_list['items']))\n",
			}},
			{Image: "remove-local-config-resources"},
			{Image: "set-image", ConfigMap: map[string]string{"name": "nginx", "newTag": "9"}},
			{Image: "create-setters", ConfigMap: map[string]string{"called": pick("web", "package")}},
			{Image: "apply-setters", ConfigMap: map[string]string{"called": "other"}},
			{Image: "ensure-name-substring", ConfigMap: map[string]string{"prepend": "eu-"}},
			{Image: "cel-mutate", ConfigMap: map[string]string{"path": "metadata.annotations.all", "expression": "string(objects.size())"}},
			{Image: "set-name-prefix", ConfigMap: map[string]string{"prefix": pick("eu-", "us-")}},
			copies(),
		}[one%12])
	}
	return v
}

// TestSharingChangesNothing holds that variants that share what they are made of are, byte for byte, what each is that is made
// alone.
func TestSharingChangesNothing(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(1, 2))
	shared, _, cached := counted()
	for n := range 24 {
		v := randomVersion(t, dice, n)
		for twin := range 3 {
			v.Config.Owner.Name += "-twin"
			if twin > 1 {
				v.Config.Package += "-twin"
			}
			want, wrong := variant.Desired(t.Context(), v, "", alone{v.Config})
			got, err := variant.Desired(t.Context(), v, "", shared)
			if text(wrong) != text(err) {
				t.Fatalf("%d: alone it is %v, and shared %v", n, wrong, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%d: %+v\n(-alone +shared):\n%s", n, v.Config, diff)
			}
		}
	}
	if cached.Load() < 20 {
		t.Errorf("%d were known", cached.Load())
	}
}

func text(err error) string {
	if failed, ok := errors.AsType[*function.Error](err); ok {
		return failed.Error()
	}
	return fmt.Sprint(err)
}
