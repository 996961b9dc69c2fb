package variant_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/variant"
)

func intent(t *testing.T, v variant.Version) string {
	t.Helper()
	digest, err := variant.Intent(v.Blueprint, v.Config)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func TestIntentChangesWithWhatIsMade(t *testing.T) {
	t.Parallel()
	start := func() variant.Version { return variant.Version{Blueprint: blueprint(t, "v1"), Config: config()} }
	seen := map[string]string{intent(t, start()): "the start"}
	for name, change := range map[string]func(*variant.Version){
		"repository":  func(v *variant.Version) { v.Blueprint.Repo += "x" },
		"directory":   func(v *variant.Version) { v.Blueprint.Directory += "x" },
		"tag":         func(v *variant.Version) { v.Blueprint.Ref = "shops/web/v9" },
		"commit":      func(v *variant.Version) { v.Blueprint.Commit = "another" },
		"tree":        func(v *variant.Version) { v.Blueprint.Tree = "another" },
		"owner":       func(v *variant.Version) { v.Config.Owner.Name = "other" },
		"package":     func(v *variant.Version) { v.Config.Package = "other" },
		"deployment":  func(v *variant.Version) { v.Config.Deployment = false },
		"label":       func(v *variant.Version) { v.Config.Labels["x"] = "" },
		"annotation":  func(v *variant.Version) { v.Config.Annotations = nil },
		"context":     func(v *variant.Version) { v.Config.Context["tier"] = "x" },
		"context key": func(v *variant.Version) { v.Config.ContextGone = nil },
		"namespace":   func(v *variant.Version) { v.Config.Namespace = "" },
		"function":    func(v *variant.Version) { v.Config.Pipeline.Mutators[0].ConfigMap["x"] = "y" },
		"selector":    func(v *variant.Version) { v.Config.Pipeline.Mutators[0].Exclude[0].Name = "y" },
		"content":     func(v *variant.Version) { v.Config.Sources[0].Content = data("x", "y") },
		"object":      func(v *variant.Version) { v.Config.Sources[0].Name = "y" },
		"order":       func(v *variant.Version) { s := v.Config.Sources; s[0], s[1] = s[1], s[0] },
	} {
		v := start()
		change(&v)
		digest := intent(t, v)
		if same, found := seen[digest]; found {
			t.Errorf("%s has the intent of %s", name, same)
		}
		seen[digest] = name
	}
}

func TestIntentIsThatOfWhatIsMeant(t *testing.T) {
	t.Parallel()
	v := variant.Version{Blueprint: blueprint(t, "v1"), Config: config()}
	v.Config.ContextGone = []string{"b", "a"}
	want := intent(t, v)
	v.Config.ContextGone = []string{"a", "b", "a"}
	v.Config.Pipeline.Validators = []kpt.Function{}
	v.Config.Sources[2].Content = map[string]any{"spec": map[string]any{"rank": float64(3)}}
	v.Blueprint.Package = nil
	if got := intent(t, v); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAppliedTellsAllButWhatIsInjected(t *testing.T) {
	t.Parallel()
	want := config()
	text, err := want.Applied()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "9000") || want.Sources[0].Content == nil {
		t.Errorf("what is injected: %s", text)
	}
	got, err := variant.DecodeApplied(text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want.Sources {
		want.Sources[i].Content = nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := variant.Desired(t.Context(), variant.Version{Blueprint: blueprint(t, "v1"), Config: got}, "", nil); err == nil {
		t.Error("it was made without what is to be injected")
	}
	for _, text := range []string{"", "{", `{"owner":{}} {}`, `{"tomorrow":1}`, "[]"} {
		if got, err := variant.DecodeApplied(text); err == nil {
			t.Errorf("%s gives %+v", text, got)
		}
	}
}

func FuzzDecodeApplied(f *testing.F) {
	text, err := config().Applied()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(`{"owner":{"namespace":"a","name":"b"},"contextGone":["b","a","b"],"sources":[{"content":{"a":1e400}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		config, err := variant.DecodeApplied(text)
		if err != nil {
			return
		}
		again, err := config.Applied()
		if err != nil {
			t.Fatal(err)
		}
		same, err := variant.DecodeApplied(again)
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		if twice, err := same.Applied(); err != nil || twice != again {
			t.Fatalf("%s became %s: %v", again, twice, err)
		}
	})
}
