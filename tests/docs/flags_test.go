package docs_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"sluice.dev/sluice/internal/app"
	"sluice.dev/sluice/internal/cli"
)

// setting is a flag as a row of the page shows it.
type setting struct{ Default, Env string }

// TestFlagsAreDocumented: every flag with its default and its environment variable, and no flag that is gone.
func TestFlagsAreDocumented(t *testing.T) {
	t.Parallel()
	documented := map[string]setting{}
	for _, table := range page(t, "docs/operations.md").Tables() {
		defaults, envs := table.Column("Default"), table.Column("Environment")
		for i, flag := range table.Column("Flag") {
			if _, twice := documented[flag]; twice {
				t.Errorf("flag %s has two rows", flag)
			}
			documented[flag] = setting{defaults[i], envs[i]}
		}
	}
	if diff := cmp.Diff(bound(), documented); diff != "" {
		t.Errorf("flags in docs/operations.md (-as the program has them +as documented):\n%s", diff)
	}
}

// bound are the flags that the program has. A flag takes its default from the variable that changes it.
func bound() map[string]setting {
	none := func(string) (string, bool) { return "", false }
	flags := map[string]setting{}
	flagSet(none).VisitAll(func(flag *pflag.Flag) {
		flags["--"+flag.Name] = setting{Default: plain(flag)}
	})
	const marker = "from:"
	marked := func(key string) (string, bool) { return marker + key, true }
	flagSet(marked).VisitAll(func(flag *pflag.Flag) {
		if key, found := strings.CutPrefix(flag.DefValue, marker); found {
			known := flags["--"+flag.Name]
			known.Env = key
			flags["--"+flag.Name] = known
		}
	})
	return flags
}

func flagSet(env func(string) (string, bool)) *pflag.FlagSet {
	flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	options := app.Options{}
	options.BindFlags(flags, env)
	return flags
}

// plain is a default as people write it: 1m and not 1m0s, a list without brackets.
func plain(flag *pflag.Flag) string {
	if d, err := time.ParseDuration(flag.DefValue); err == nil && d > 0 {
		text := d.String()
		if trimmed, ok := strings.CutSuffix(text, "m0s"); ok {
			text = trimmed + "m"
		}
		if trimmed, ok := strings.CutSuffix(text, "h0m"); ok {
			text = trimmed + "h"
		}
		return text
	}
	return strings.TrimSuffix(strings.TrimPrefix(flag.DefValue, "["), "]")
}

// TestEnvironmentIsDocumented: every variable that settings are read from has a row.
func TestEnvironmentIsDocumented(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	for _, table := range page(t, "docs/operations.md").Tables() {
		for _, name := range table.Column("Variable") {
			documented[name] = true
		}
	}
	asked := map[string]bool{}
	flagSet(func(key string) (string, bool) {
		asked[key] = true
		return "", false
	})
	if len(asked) == 0 {
		t.Fatal("no variable is asked for: the test looks in the wrong place")
	}
	for name := range asked {
		if !documented[name] {
			t.Errorf("variable %s is not in docs/operations.md", name)
		}
	}
}

// TestFlagsOfCommandsAreDocumented: each that a command has beside those of kubectl's connections, with its default.
func TestFlagsOfCommandsAreDocumented(t *testing.T) {
	t.Parallel()
	documented, there := map[string]string{}, map[string]string{}
	for _, table := range slices.Concat(page(t, "docs/cli.md").Tables(), page(t, "docs/ui.md").Tables()) {
		defaults := table.Column("Default")
		for i, flag := range table.Column("Flag") {
			documented[strings.ReplaceAll(flag, "`", "")] = defaults[i]
		}
	}
	connections := pflag.NewFlagSet("connections", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(true).AddFlags(connections)
	for _, command := range cli.Commands(genericiooptions.NewTestIOStreamsDiscard(), runtime.NewScheme()) {
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			if connections.Lookup(flag.Name) != nil {
				return
			}
			name := "--" + flag.Name
			if flag.Shorthand != "" {
				name += ", -" + flag.Shorthand
			}
			there[name] = plain(flag)
		})
	}
	if diff := cmp.Diff(there, documented); diff != "" {
		t.Errorf("flags in docs/cli.md and docs/ui.md (-as the commands have them +as documented):\n%s", diff)
	}
}
