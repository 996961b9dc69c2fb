package strictjson_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/strictjson"
)

func TestWhatCouldBeUnderstoodInTwoWaysIsRefused(t *testing.T) {
	t.Parallel()
	rules := strictjson.Rules{Depth: 4, Values: 5, Names: []string{"size"}, Free: "free"}
	for document, want := range map[string]string{
		` {"size":1,"a":[{"b":1},{"b":2}],"c":null,"d":"d"} `: "",
		`{"free":{"A":1,"a":2,"Size":3,"in":{"A":1,"a":2}}}`:  "",
		`{"a":{"b":{"c":[1]}}}`:                               "",
		`{"a":{"b":{"c":[[]]}}}`:                              "nested more than 4 deep",
		`{"a":[1,2,3,4,5]}`:                                   "",
		`{"a":[1,2,3,4,5,6]}`:                                 "more than 5 in one",
		`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1}`:               "more than 5 in one",
		`{"a":1,"a":2}`:                                       `the name "a" twice`,
		`{"a":1,"\u0061":2}`:                                  `the name "a" twice`,
		`{"a":1,"A":2}`:                                       `the name "A" twice`,
		"{\"k\":1,\"\u212a\":2}":                              "twice",
		`{"free":{"a":1,"a":2}}`:                              "twice",
		`{"free":{},"a":[{"A":1,"a":2}]}`:                     "twice",
		`{"Size":1}`:                                          `"Size", which some take for "size"`,
		`[{"a":1}]`:                                           "not a JSON object",
		`null`:                                                "not a JSON object",
		`{"a":1} {}`:                                          "something follows",
		`{"a":1}]`:                                            "something follows",
		`{"a":1}{"a":1}`:                                      "something follows",
		`{"a":1} x`:                                           "something follows",
		`{"a":1,}`:                                            "not JSON",
		`{"a":[{"b":1,"b":1}]}`:                               `the name "b" twice`,
		`{"a":` + strings.Repeat("[", 1_000_000):              "nested more than 4 deep",
		`{"a":`:                                               "not JSON",
		`{"a":1`:                                              "not JSON",
		`{"a" 1}`:                                             "not JSON",
		``:                                                    "not JSON",
		"{\"a\":\"\xff\"}":                                    "not UTF-8",
	} {
		var into map[string]any
		err := rules.Unmarshal([]byte(document), &into)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: got %v, want %q", document, err, want)
		}
		if want == "" && into == nil {
			t.Errorf("%s: nothing is read", document)
		}
	}
}
