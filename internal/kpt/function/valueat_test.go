package function_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt/function"
)

// document is an object as JSON has it.
func document(t *testing.T, text string) (value any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Skip(err)
	}
	return value
}

func TestAPathLeadsToOneValue(t *testing.T) {
	t.Parallel()
	const text = `{"spec":{"hosts":["a","b","b"],"list":[{"name":"x","port":80},{"name":"y","port":81}],"n":null},"data":{"a.b/c":"d","0":"e"}}`
	for path, test := range map[string]struct {
		want any
		at   string
		err  string
	}{
		"spec.hosts.1":             {want: "b", at: "spec hosts 1"},
		"data.[a.b/c]":             {want: "d", at: "data a.b/c"},
		"data.0":                   {want: "e", at: "data 0"},
		"spec.list.[name=y].port":  {want: json.Number("81"), at: "spec list 1 port"},
		"spec.list.[port=80].name": {want: "x", at: "spec list 0 name"},
		"spec.hosts.[=a]":          {want: "a", at: "spec hosts 0"},
		"spec.n":                   {at: "spec n"},
		"spec.hosts.[=b]":          {at: "spec hosts", err: "leads to 2 values at part 3"},
		"spec.hosts.3":             {at: "spec hosts 3", err: "nothing is at part 3"},
		"spec.hosts.-1":            {at: "spec hosts -1", err: "leads nowhere"},
		"spec.none.more":           {at: "spec none", err: "nothing is at part 2"},
		"spec.list.*.name":         {at: "spec list", err: "'*' stands for several values"},
		"spec.list.[name=z]":       {at: "spec list", err: "leads nowhere"},
	} {
		got, at, err := function.ValueAt(document(t, text), path)
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: the error is %v, and not %q", path, err, test.err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" || strings.Join(at, " ") != test.at {
			t.Errorf("%s: the keys are %q\n%s", path, at, diff)
		}
	}
}

// TestAPathIsCheckedBeforeAnythingIsThere: what cannot be read, or stands for several values, is known without a value.
func TestAPathIsCheckedBeforeAnythingIsThere(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"spec.hosts.0":                         "",
		"data.[a.b/c]":                         "",
		"spec.[*]":                             "",
		"spec..a":                              "empty part",
		"spec.":                                "empty part",
		"spec.[a":                              "a bracket is not closed",
		"[a]b":                                 "a dot has to follow",
		"spec.*.name":                          "'*' stands for several values",
		"a" + strings.Repeat(".a", 100) + ".b": "longer than 100 parts",
	} {
		if err := function.CheckPath(path); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, and not %q", path, err, want)
		}
	}
}

// FuzzValueAt holds that no path breaks anything, and that the keys lead to what was found.
func FuzzValueAt(f *testing.F) {
	f.Add("spec.list.[name=a].b.0", `{"spec":{"list":[{"name":"a","b":[1]}]}}`)
	f.Add("[a.b].[=c]", `{"a.b":["c"]}`)
	f.Add("*", `{"*":1}`)
	f.Add(`a\.b`, `{"a.b":null}`)
	f.Fuzz(func(t *testing.T, path, text string) {
		root := document(t, text)
		found, at, err := function.ValueAt(root, path)
		if err != nil {
			return
		}
		steps := strings.NewReplacer(`\`, `\\`, ".", `\.`)
		for _, key := range at {
			if strings.ContainsAny(key, "[]*=") || key == "" {
				return // Such a key is not written as it is.
			}
		}
		for i := range at {
			at[i] = steps.Replace(at[i])
		}
		again, _, err := function.ValueAt(root, strings.Join(at, "."))
		if diff := cmp.Diff(found, again); err != nil || diff != "" {
			t.Errorf("%q led to something, and its keys %q do not: %v\n%s", path, at, err, diff)
		}
	})
}
