package revision_test

import (
	"testing"

	"sluice.dev/sluice/internal/revision"
)

func TestRevisionIsWrittenAsFluxDoes(t *testing.T) {
	t.Parallel()
	const pin = "sha1:1eabc9a41ca088515cab83f1cce49eb43e84b67f"
	for ref, want := range map[string]string{
		"":                   pin,
		"main":               "main@" + pin,
		"refs/pull/420/head": "refs/pull/420/head@" + pin,
		"bot/react@18":       "bot/react@18@" + pin,
	} {
		if got := revision.Format(ref, pin); got != want {
			t.Errorf("%q: want %s, got %s", ref, want, got)
		}
	}
}
