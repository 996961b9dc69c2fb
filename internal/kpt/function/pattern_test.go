package function

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFillKeepsWhatItIsNotTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason  string
		pattern string
		values  map[string]string
		current string
		want    string
		wantErr string
	}{
		"all": {
			reason: "With values for all, what is there makes no difference.", pattern: "${a}-${b}",
			values: map[string]string{"a": "x", "b": "y"}, current: "whatever", want: "x-y",
		},
		"tag": {
			reason: "One reading is certain.", pattern: "${image}:${tag}",
			values: map[string]string{"tag": "1.8"}, current: "nginx:1.7", want: "nginx:1.8",
		},
		"path": {
			reason:  "Text on both sides bounds a setter.",
			pattern: "https://${host}/v1/${path}?x=${x}", values: map[string]string{"x": "2"},
			current: "https://example.com/v1/a/b?x=1", want: "https://example.com/v1/a/b?x=2",
		},
		"ambiguous": {
			reason: "A greedy reading would lose my- without a word.", pattern: "${env}-${app}",
			values: map[string]string{"env": "prod"}, current: "dev-my-app",
			wantErr: "values for the setters app must be provided: what is there can be read as ${env}-${app} in several ways",
		},
		"there already": {
			reason:  "What has the value is not read again: else the separator in it would make it grow.",
			pattern: "${env}-${app}", values: map[string]string{"env": "prod-eu"}, current: "prod-eu-my-app", want: "prod-eu-my-app",
		},
		"empty": {
			reason: "Nothing is a value as well.", pattern: "${prefix}app${suffix}",
			values: map[string]string{"suffix": "-1"}, current: "app", want: "app-1",
		},
		"another form": {
			reason: "A value of another form says nothing.", pattern: "${image}:${tag}",
			values: map[string]string{"tag": "1.8"}, current: "nginx",
			wantErr: "values for the setters image must be provided: what is there is not of the form ${image}:${tag}",
		},
		"twice": {
			reason: "A setter that stands twice has one value.", pattern: "${a}.${b}.${a}",
			values: map[string]string{"b": "z"}, current: "x.y.x", want: "x.z.x",
		},
		"twice, and differs": {
			reason: "Which of the two is meant nobody knows.", pattern: "${a}.${b}.${a}",
			values: map[string]string{"b": "z"}, current: "x.y.w",
			wantErr: "values for the setters a must be provided: what is there is not of the form ${a}.${b}.${a}",
		},
		"one tells of another": {
			reason: "The second place of a setter bounds its first.", pattern: "${a}/${b}/x/${a}x",
			values: map[string]string{"b": "new"}, current: "q/b/x/qx", want: "q/new/x/qx",
		},
		"too long": {
			reason: "Reading takes time in the square of the length.", pattern: "${a}-${b}",
			values: map[string]string{"b": "z"}, current: strings.Repeat("x", maxRead+1),
			wantErr: "values for the setters a must be provided: what is there is too long to be read as ${a}-${b}",
		},
		"in the middle": {
			reason: "Setters without anything between them cannot be told apart.", pattern: "${a}${b}",
			values: map[string]string{"b": "z"}, current: "xy",
			wantErr: "values for the setters a must be provided: what is there can be read as ${a}${b} in several ways",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := parsePattern(c.pattern)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.fill(c.values, c.current)
			gotErr := ""
			if err != nil {
				gotErr = err.Error()
			}
			if diff := cmp.Diff(c.wantErr, gotErr); diff != "" {
				t.Errorf("%s\nerror (-want +got):\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestAWrongPatternIsAnError(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"${", "a${b", "${}", "${a b}", "${a${b}}", strings.Repeat("${a}", maxNames+1)} {
		if p, err := parsePattern(wrong); err == nil {
			t.Errorf("%q is read as %v", wrong, p)
		}
	}
	for _, right := range []string{"", "a", "$a", "}", "a}b", "$${a}", "${a}"} {
		p, err := parsePattern(right)
		if err != nil {
			t.Errorf("%q: %v", right, err)
		}
		if p.String() != right {
			t.Errorf("%q is read as %q", right, p)
		}
	}
}

// FuzzFill holds that filling twice is filling once, and that what is recovered makes the value that it came from.
func FuzzFill(f *testing.F) {
	f.Add("${image}:${tag}", "nginx:1.7", "tag", "1.8")
	f.Add("${a}-${b}", "x-y-z", "a", "q-r")
	f.Add("${a}${a}", "xxxx", "b", "")
	f.Add("x${a}x", "xxx", "a", "x")
	f.Add("${", "", "", "")
	f.Add("${a}aa${b}a${c}", "aaaaaaaa", "b", "a")
	f.Fuzz(func(t *testing.T, from, current, name, value string) {
		p, err := parsePattern(from)
		if err != nil {
			return
		}
		if recovered, ambiguous := p.recover(current, p.names()); recovered != nil && len(ambiguous) == 0 {
			if again := p.with(recovered).text(); again != current {
				t.Errorf("%q in %q is read as %v, which makes %q", from, current, recovered, again)
			}
		}
		values := map[string]string{name: value}
		once, err := p.fill(values, current)
		if err != nil || len(once) > maxRead {
			return
		}
		if twice, err := p.fill(values, once); err != nil || twice != once {
			t.Errorf("%q with %v makes %q of %q, and then %q, %v", from, values, once, current, twice, err)
		}
	})
}
