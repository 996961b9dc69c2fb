package merge_test

import (
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/merge"
)

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-%d
  labels: {app: web}
spec:
  replicas: %d
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        image: registry.example.com/web:v%d
        env:
        - name: A
          value: a
        - name: B
          value: b
        ports:
        - containerPort: 80
        resources:
          limits: {cpu: 100m, memory: 100Mi}
`

// deployments are a package of so many files with a Deployment each.
func deployments(count, replicas, version int) kpt.Package {
	texts := map[string]string{"Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n"}
	for i := range count {
		texts[fmt.Sprintf("web-%d.yaml", i)] = fmt.Sprintf(deployment, i, replicas, version)
	}
	return files(texts)
}

// BenchmarkMerge merges 20 objects that both sides changed.
func BenchmarkMerge(b *testing.B) {
	base, theirs, local := deployments(20, 1, 1), deployments(20, 1, 2), deployments(20, 2, 1)
	for b.Loop() {
		if _, conflicts, err := merge.Merge(base, theirs, local, merge.Upstream); err != nil || len(conflicts) > 0 {
			b.Fatal(conflicts, err)
		}
	}
}

// BenchmarkMergeOfLongLists merges lists of 20,000 elements, with keys and without.
func BenchmarkMergeOfLongLists(b *testing.B) {
	for name, element := range map[string]string{"keyed": "- name: e%d\n  value: v%d%s\n", "unkeyed": "- a: e%d\n  value: v%d%s\n", "words": "- e%dv%d%s\n", "repeated": "- e%.0dv%.0d%s\n"} {
		b.Run(name, func(b *testing.B) {
			list := func(every int, word string) kpt.Package {
				text := strings.Builder{}
				text.WriteString("list:\n")
				for i := range 20_000 {
					changed := ""
					if every > 0 && i%every == 0 {
						changed = word
					}
					fmt.Fprintf(&text, element, i, i, changed)
				}
				return files(map[string]string{"a.yaml": text.String()})
			}
			base, theirs, local := list(0, ""), list(7, "t"), list(5, "l")
			for b.Loop() {
				if _, _, err := merge.Merge(base, theirs, local, merge.Upstream); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
