package function

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestExamplesOfTheDocumentationRun renders objects with the configurations that docs/package-functions.md has.
func TestExamplesOfTheDocumentationRun(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/package-functions.md")
	if err != nil {
		t.Fatal(err)
	}
	const objects = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  template:
    spec:
      containers:
      - {name: web, image: nginx}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  externalIPs: [10.0.0.1]
`
	kinds := map[string]string{"SetImage": "set-image", "StarlarkRun": "starlark", "CELMutate": "cel-mutate", "CELValidate": "cel-validate"}
	for _, example := range regexp.MustCompile("(?s)```yaml fragment\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for kind, image := range kinds {
			if !strings.Contains(example[1], "\nkind: "+kind+"\n") {
				continue
			}
			delete(kinds, kind)
			p := packageOf("Kptfile", kptfileOf("{image: "+image+", configPath: config.yaml}"), "config.yaml", example[1], "a.yaml", objects)
			made, _, err := New(Options{}).Render(t.Context(), p)
			if err != nil {
				t.Errorf("%s: %v", kind, err)
				continue
			}
			if same := string(made["a.yaml"].Content) == objects; same != (kind == "CELValidate") {
				t.Errorf("%s makes\n%s", kind, made["a.yaml"].Content)
			}
		}
	}
	for kind := range kinds {
		t.Errorf("there is no example of %s", kind)
	}
}
