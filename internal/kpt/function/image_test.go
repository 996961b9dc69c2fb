package function

import "testing"

func TestAnImageIsTakenApartAsRegistriesDo(t *testing.T) {
	t.Parallel()
	for reference, want := range map[string]image{
		"nginx":                       {name: "nginx"},
		"nginx:1.7":                   {name: "nginx", tag: "1.7"},
		"host:5000/nginx":             {name: "host:5000/nginx"},
		"host:5000/a/nginx:1@sha256:": {name: "host:5000/a/nginx", tag: "1", digest: "sha256:"},
		"nginx@sha256:ab":             {name: "nginx", digest: "sha256:ab"},
		"":                            {},
	} {
		got := cutImage(reference)
		if got != want {
			t.Errorf("%q: want %+v, got %+v", reference, want, got)
		}
		if got.String() != reference {
			t.Errorf("%q became %q", reference, got)
		}
	}
}

func TestAChangeThatMakesNoImageIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason string
		change imageChange
	}{
		{"It would be for no image.", imageChange{NewTag: "1"}},
		{"It would change nothing.", imageChange{Name: "a"}},
		{"No image is found by it.", imageChange{Name: "a:1", NewTag: "2"}},
		{"Two tags would be said.", imageChange{Name: "a", NewName: "b:1"}},
		{"Nobody could pull it.", imageChange{Name: "a", NewTag: "1 2"}},
		{"A digest is whole or none.", imageChange{Name: "a", Digest: "sha256:abc"}},
	} {
		if c.change.check() == nil {
			t.Errorf("%+v is taken: %s", c.change, c.reason)
		}
	}
}
