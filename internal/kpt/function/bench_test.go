package function

import (
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/kpt"
)

// large is a package of a hundred workloads with their Services, and four functions.
func large(env string) kpt.Package {
	p := packageOf("Kptfile", kptfileOf(
		"{image: set-namespace, configMap: {namespace: "+env+"}}",
		"{image: set-labels, configMap: {env: "+env+", team: a}}",
		"{image: set-annotations, configMap: {example.com/env: "+env+"}}",
		"{image: apply-setters, configMap: {replicas: '3', tag: 1.2.3}}"))
	for i := range 100 {
		p[fmt.Sprintf("app-%d.yaml", i)] = kpt.File{Mode: 0o644, Content: []byte(strings.ReplaceAll(`# One of many.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: app-N
  namespace: example
spec:
  replicas: 1 # kpt-set: ${replicas}
  selector:
    matchLabels:
      app: app-N
  template:
    metadata:
      labels:
        app: app-N
    spec:
      containers:
      - name: app
        image: registry.example.com/app-N:1.0.0 # kpt-set: registry.example.com/app-N:${tag}
        ports:
        - containerPort: 8080
          name: http
        resources:
          requests: {cpu: 10m, memory: 64Mi}
---
apiVersion: v1
kind: Service
metadata:
  name: app-N
  namespace: example
spec:
  selector:
    app: app-N
  ports:
  - port: 80
    targetPort: http
`, "N", fmt.Sprint(i)))}
	}
	return p
}

func BenchmarkRender(b *testing.B) {
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		// Nothing is kept, and every package is another one.
		if _, _, err := New(Options{}).Render(b.Context(), large(fmt.Sprintf("env-%d", i))); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkKept(b *testing.B) {
	b.ReportAllocs()
	r, p := New(Options{}), large("prod")
	for b.Loop() {
		if _, _, err := r.Render(b.Context(), p); err != nil {
			b.Fatal(err)
		}
	}
}
