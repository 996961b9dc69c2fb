package registry

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	for header, test := range map[string]struct {
		reason string
		want   challenge
		ok     bool
	}{
		`Bearer realm="https://a/t",service="s",scope="x:y:z,w"`: {
			"the usual form",
			challenge{scheme: "bearer", params: map[string]string{"realm": "https://a/t", "service": "s", "scope": "x:y:z,w"}},
			true,
		},
		`Basic realm="x", Bearer realm="https://a/t"`: {
			"Bearer is preferred", challenge{scheme: "bearer", params: map[string]string{"realm": "https://a/t"}}, true,
		},
		`bearer Realm = "a\"b" , service=s`: {
			"spaces, escapes and tokens", challenge{scheme: "bearer", params: map[string]string{"realm": `a"b`, "service": "s"}}, true,
		},
		`Bearer realm="a",realm="b"`: {
			"a parameter twice", challenge{scheme: "bearer", params: map[string]string{"realm": "b"}, twice: true}, true,
		},
		`Basic`:                          {"no parameters", challenge{scheme: "basic", params: map[string]string{}}, true},
		`Negotiate`:                      {"nothing that can be answered", challenge{}, false},
		`Bearer realm="a`:                {"an open quote says nothing", challenge{}, false},
		``:                               {"nothing", challenge{}, false},
		`="x"`:                           {"no scheme", challenge{}, false},
		`Basic realm="x", Bearer realm=`: {"the broken one is left out", challenge{scheme: "basic", params: map[string]string{"realm": "x"}}, true},
	} {
		got, ok := choose(http.Header{"Www-Authenticate": {header}})
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(challenge{})); diff != "" || ok != test.ok {
			t.Errorf("%s: choose(%q): %t %s", test.reason, header, ok, diff)
		}
	}
}

func FuzzChallenges(f *testing.F) {
	f.Add(`Bearer realm="https://a/t",service="s"`)
	f.Add(`Basic realm="x", Bearer realm=`)
	f.Add(`a b c=d,e="\`)
	f.Fuzz(func(t *testing.T, header string) {
		for _, found := range parseChallenges(header) {
			if found.scheme == "" {
				t.Errorf("challenge without a scheme in %q", header)
			}
		}
	})
}
