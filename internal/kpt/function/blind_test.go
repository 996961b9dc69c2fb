package function

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/kpt"
)

func TestSeesName(t *testing.T) {
	t.Parallel()
	labels := kptfileOf("{image: set-labels, configMap: {a: b}}")
	for name, c := range map[string]struct {
		reason  string
		kptfile string
		want    bool
	}{
		"labels":       {"They are for objects of the cluster.", labels, false},
		"replacements": {"They copy from any object.", kptfileOf("{image: apply-replacements, configPath: r.yaml}"), true},
		"foreign":      {"It is given everything.", kptfileOf("{image: example.com/fn, configMap: {a: b}}"), true},
		"program":      {"Who knows.", kptfileOf("{exec: fn}"), true},
		"configured":   {"The Kptfile itself is what it is told.", kptfileOf("{image: starlark, configPath: Kptfile}"), true},
		"setter":       {"The name is made of the comment.", strings.Replace(labels, "  name: ", "  # kpt-set: ${name}\n  name: ", 1), true},
		"alias":        {"Something else says the same.", strings.Replace(labels, "  name: ", "  name: &name ", 1), true},
	} {
		resources, err := kpt.Open(packageOf("Kptfile", c.kptfile, "sub/Kptfile", labels))
		if err != nil {
			t.Fatal(err)
		}
		if got := SeesName(resources); got != c.want {
			t.Errorf("%s: %s\nit is %v:\n%s", name, c.reason, got, c.kptfile)
		}
		if resources, err = kpt.Open(packageOf("Kptfile", labels, "sub/Kptfile", c.kptfile)); err != nil {
			t.Fatal(err)
		}
		if got := SeesName(resources); got != c.want {
			t.Errorf("%s of a package beneath: it is %v", name, got)
		}
	}
}
