package revision_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/internal/revision"
)

const (
	sha1   = "1eabc9a41ca088515cab83f1cce49eb43e84b67f"
	sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
)

func TestParse(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		text   string
		want   revision.Revision
	}{
		"branch": {
			reason: "A branch is followed by its commit.",
			text:   "main@sha1:" + sha1,
			want:   revision.Revision{Ref: "main", Algorithm: "sha1", Hash: sha1},
		},
		"commit": {
			reason: "A pinned commit has no reference.",
			text:   "sha1:" + sha1,
			want:   revision.Revision{Algorithm: "sha1", Hash: sha1},
		},
		"full reference": {
			reason: "A reference given by name stays whole.",
			text:   "refs/pull/420/head@sha1:" + sha1,
			want:   revision.Revision{Ref: "refs/pull/420/head", Algorithm: "sha1", Hash: sha1},
		},
		"image tag": {
			reason: "Registries name manifests by sha256.",
			text:   "v1.0.0@sha256:" + sha256,
			want:   revision.Revision{Ref: "v1.0.0", Algorithm: "sha256", Hash: sha256},
		},
		"at sign in the reference": {
			reason: "Git allows '@' in branches, so that the last one counts.",
			text:   "bot/react@18@sha1:" + sha1,
			want:   revision.Revision{Ref: "bot/react@18", Algorithm: "sha1", Hash: sha1},
		},
		"reference that looks like a revision": {
			reason: "What stands before the last '@' is not looked into.",
			text:   "sha1:abc@sha1:" + sha1,
			want:   revision.Revision{Ref: "sha1:abc", Algorithm: "sha1", Hash: sha1},
		},
		"letters beyond ASCII": {
			reason: "Branches may be named in any language.",
			text:   "größe@sha1:" + sha1,
			want:   revision.Revision{Ref: "größe", Algorithm: "sha1", Hash: sha1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := revision.Parse(tc.text)
			if err != nil {
				t.Fatalf("%s Parse(%q): %v", tc.reason, tc.text, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s Parse(%q) (-want +got):\n%s", tc.reason, tc.text, diff)
			}
			if diff := cmp.Diff(tc.text, got.String()); diff != "" {
				t.Errorf("%s String is not what was parsed (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		text string
		says string
	}{
		"nothing":           {text: "", says: "does not end in <algorithm>:<hash>"},
		"a branch alone":    {text: "main", says: "does not end in <algorithm>:<hash>"},
		"the old form":      {text: "main/" + sha1, says: "does not end in <algorithm>:<hash>"},
		"no reference":      {text: "@sha1:" + sha1, says: "nothing stands before '@'"},
		"unknown algorithm": {text: "main@md5:d41d8cd98f00b204e9800998ecf8427e", says: `algorithm "md5" is none of`},
		"algorithm in capitals": {
			text: "main@SHA1:" + sha1, says: `algorithm "SHA1" is none of`,
		},
		"short hash":          {text: "main@sha1:1eabc9a", says: "a sha1 hash has 40 digits, not 7"},
		"hash of another one": {text: "main@sha256:" + sha1, says: "a sha256 hash has 64 digits, not 40"},
		"hash in capitals":    {text: "main@sha1:" + strings.ToUpper(sha1), says: "not lower-case hexadecimal"},
		"no digit in a hash":  {text: "main@sha1:" + strings.Replace(sha1, "a", "g", 1), says: "not lower-case hexadecimal"},
		"space":               {text: "my branch@sha1:" + sha1, says: "holds a space"},
		"line break":          {text: "main\n@sha1:" + sha1, says: "a control character"},
		"no text":             {text: "ma\xffin@sha1:" + sha1, says: "bytes that are no text"},
		"too long":            {text: strings.Repeat("a", revision.MaxLength) + "@sha1:" + sha1, says: "bytes are more than 4096"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := revision.Parse(tc.text)
			if !errors.Is(err, revision.ErrInvalid) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("Parse(%q): want an error that says %q, got %v", tc.text, tc.says, err)
			}
			if diff := cmp.Diff(revision.Revision{}, got); diff != "" {
				t.Errorf("Parse(%q) gives a revision beside the error:\n%s", tc.text, diff)
			}
		})
	}
}

func TestZeroRevisionPrintsNothing(t *testing.T) {
	t.Parallel()
	if got := (revision.Revision{}).String(); got != "" {
		t.Errorf("got %q", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "@", ":", "@:", "main", "main@sha1:" + sha1, "sha1:" + sha1, "a@b@sha1:" + sha1, "v1.0.0@sha256:" + sha256,
		"refs/heads/x@sha1:" + sha1, "main/" + sha1, "main@sha1:", "ma\xffin@sha1:" + sha1, "main@sha1:" + sha1 + "\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := revision.Parse(text)
		if err != nil {
			if !errors.Is(err, revision.ErrInvalid) {
				t.Fatalf("Parse(%q): %v is no ErrInvalid", text, err)
			}
			return
		}
		if got.String() != text {
			t.Fatalf("Parse(%q) prints as %q", text, got)
		}
		if len(text) > revision.MaxLength || got.Hash == "" || strings.Contains(got.Pin(), "@") {
			t.Fatalf("Parse(%q) accepted %#v", text, got)
		}
	})
}
