package script

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

func TestNumbersAreNotReadAtAnyLength(t *testing.T) {
	t.Parallel()
	digits := strings.Repeat("9", 3_000_000)
	for name, c := range map[string]struct {
		reason string
		script Script
		is     error
	}{
		"an argument by name": {"A check of places alone is passed by.", Script{Source: "x = int(x='9' * 3000000)\n"}, ErrLimit},
		"a tagged number": {
			"A package can say of any text that it is a number.",
			Script{Source: "x = 1\n", Items: []*yaml.Node{{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{
				{Kind: yaml.ScalarNode, Tag: "!!str", Value: "a"}, {Kind: yaml.ScalarNode, Tag: "!!int", Value: digits},
			}}}},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			if _, err := Run(t.Context(), c.script); !errors.Is(err, c.is) {
				t.Errorf("%s\n%v", c.reason, err)
			}
			if took := time.Since(begun); took > 2*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}
