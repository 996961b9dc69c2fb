package auth

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/failure"
)

func TestData(t *testing.T) {
	t.Parallel()
	const field = "spec.verify.secretRef"
	half := strings.Repeat("canary--", maxValue/8)
	cases := map[string]struct {
		reason string
		name   string
		data   map[string]string
		err    error
		waits  bool
		want   []string // what an error has to name; nil if there is none
	}{
		"keys":       {reason: "All keys are returned, as they are.", data: map[string]string{"a.pub": "x\n", "b.pub": ""}},
		"largest":    {reason: "A limit is what still passes.", data: map[string]string{"a": half}},
		"missing":    {reason: "It may yet be created.", name: "absent", want: []string{"secret 'apps/absent' not found", "create it", field}},
		"unreadable": {reason: "What the API server says is passed on.", err: errors.New("refused"), waits: true, want: []string{"read secret 'apps/keys': refused"}},
		"empty":      {reason: "Nobody can be trusted by it.", want: []string{"has no keys", field}},
		"value":      {reason: "A value is bounded.", data: map[string]string{"a.pub": half + "x"}, want: []string{"'a.pub'", "larger than 524288 bytes"}},
		"total":      {reason: "The whole is bounded.", data: map[string]string{"a": half, "b": half}, want: []string{"larger than 1048576 bytes", field}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.name == "" {
				tc.name = "keys"
			}
			reader := objects{secrets: map[string]map[string]string{"keys": tc.data}, err: tc.err}
			got, err := New(reader, Options{}).Data(t.Context(), "apps", tc.name, field)
			if tc.want == nil {
				values := map[string]string{}
				for key, value := range got {
					values[key] = string(value)
				}
				if diff := cmp.Diff(tc.data, values); err != nil || diff != "" {
					t.Errorf("%s got %v, -want +got:\n%s", tc.reason, err, diff)
				}
				return
			}
			if err == nil {
				t.Fatalf("%s got no error", tc.reason)
			}
			found := failure.Of(err)
			if found.Reason != "VerificationError" || found.Disposition == failure.Stalls || (found.Disposition == failure.Waits) != tc.waits {
				t.Errorf("%s got %v %s", tc.reason, found.Disposition, found.Reason)
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s want %q in %q", tc.reason, part, err)
				}
			}
			keepsSecrets(t, err, tc.data)
		})
	}
}
