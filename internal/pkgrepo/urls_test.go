package pkgrepo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestARepositoryIsReachedByTheURLItHas: nothing is appended to it, and an escaped space is one, in what is read and what is pushed.
func TestARepositoryIsReachedByTheURLItHas(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, path string }{
		"bare":  {"Not every server ends a name with .git.", "team/web"},
		"azure": {"Azure DevOps has names of projects in it, and _git.", "team/my%20project/_git/web"},
		"space": {"So may the name itself have one, and .git.", "my%20project/all%20of%20it.git"},
	} {
		for _, over := range []string{overHTTP, overSSH} {
			t.Run(name+" over "+over, func(t *testing.T) {
				t.Parallel()
				t.Log(tc.reason)
				s := newShop(t, over, func(s *shop) {
					s.settings.Directory = "config"
					at := filepath.Join(filepath.Dir(s.Dir()), filepath.FromSlash(strings.ReplaceAll(tc.path, "%20", " ")))
					if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
						t.Fatal(err)
					}
					if err := os.Symlink(s.Dir(), at); err != nil {
						t.Fatal(err)
					}
					s.settings.Fetch.URL = strings.TrimSuffix(s.settings.Fetch.URL, "shop.git") + tc.path
					s.settings.Push = s.settings.Fetch
				})
				walkThrough(t, s)
			})
		}
	}
}
