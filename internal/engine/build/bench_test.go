package build_test

import (
	"testing"

	"sluice.dev/sluice/internal/engine/build"
)

func benchmark(b *testing.B, kustomized bool, vars map[string]string) {
	b.Helper()
	builder, r := build.New(build.Options{}), build.Request{Tree: many(300, kustomized), Substitute: vars}
	b.ReportAllocs()
	for b.Loop() {
		objects, err := objectsOf(builder.Build(b.Context(), r))
		check(b, err)
		if len(objects) != 300 {
			b.Fatal(len(objects))
		}
	}
}

func BenchmarkPlain300(b *testing.B) { benchmark(b, false, nil) }

func BenchmarkPlain300Substituted(b *testing.B) { benchmark(b, false, map[string]string{"A": "a"}) }

func BenchmarkKustomize300(b *testing.B) { benchmark(b, true, nil) }

// BenchmarkKustomize1 is mostly the start of a process.
func BenchmarkKustomize1(b *testing.B) {
	builder, r := build.New(build.Options{}), build.Request{Tree: tree(map[string]string{"kustomization.yaml": kustomizationA, "a.yaml": configMap("a", "")})}
	for b.Loop() {
		_, err := builder.Build(b.Context(), r)
		check(b, err)
	}
}

// BenchmarkKustomizeNamespace300 makes kustomize read the schema of Kubernetes.
func BenchmarkKustomizeNamespace300(b *testing.B) {
	builder, r := build.New(build.Options{}), build.Request{Tree: many(300, false), TargetNamespace: "apps"}
	for b.Loop() {
		_, err := builder.Build(b.Context(), r)
		check(b, err)
	}
}

func BenchmarkRenderDigest300(b *testing.B) {
	objects, err := objectsOf(build.New(build.Options{}).Build(b.Context(), build.Request{Tree: many(300, false)}))
	check(b, err)
	for b.Loop() {
		build.RenderDigest(objects)
	}
}
