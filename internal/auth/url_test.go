package auth

import (
	"net/url"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/failure"
)

func TestSplitURL(t *testing.T) {
	t.Parallel()

	cases := map[string]struct {
		reason, raw, clean string
		user               *url.Userinfo
		problem            string
	}{
		"plain":        {reason: "Nothing to split.", raw: "https://git.example/x.git", clean: "https://git.example/x.git"},
		"user":         {reason: "A user may stand alone.", raw: "ssh://git@git.example:22/x", clean: "ssh://git.example:22/x", user: url.User("git")},
		"password":     {reason: "Both go.", raw: "http://me:p%2Fw@[::1]:80/x?y=z", clean: "http://[::1]:80/x?y=z", user: url.UserPassword("me", "p/w")},
		"case":         {reason: "Schemes have no case.", raw: "HTTPS://git.example/x", clean: "https://git.example/x"},
		"not a url":    {reason: "The parser's words hold a password.", raw: "https://me:canary/w@git.example", problem: "is not a URL"},
		"control":      {reason: "No URL has a line break.", raw: "https://git.example/x\ncanary", problem: "is not a URL"},
		"scp":          {reason: "The short form is no URL.", raw: "git@git.example:canary/x", problem: "is not a URL"},
		"scheme":       {reason: "Only what is spoken here.", raw: "file:///canary", problem: "has a scheme other than"},
		"no host":      {reason: "There is nobody to ask.", raw: "https:///canary", problem: "names no host"},
		"only a port":  {reason: "There is nobody to ask.", raw: "https://:80/canary", problem: "names no host"},
		"opaque":       {reason: "There is nobody to ask.", raw: "https:canary", problem: "names no host"},
		"line break":   {reason: "A header cannot carry it.", raw: "https://me:canary%0Aw@git.example/x", problem: "line break"},
		"colon":        {reason: "Basic authentication cannot send it.", raw: "https://can%3Aary:w@git.example/x", problem: "colon"},
		"user of line": {reason: "A command line cannot carry it.", raw: "ssh://can%0Aary@git.example/x", problem: "line break"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clean, user, err := SplitURL(tc.raw)
			if tc.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tc.problem) || strings.Contains(err.Error(), "canary") {
					t.Fatalf("%s got error %v", tc.reason, err)
				}
				if got := failure.Of(err); got.Disposition != failure.Stalls || got.Reason != "URLInvalid" {
					t.Errorf("%s got %v %s", tc.reason, got.Disposition, got.Reason)
				}
				return
			}
			if err != nil || clean != tc.clean || user.String() != tc.user.String() {
				t.Errorf("%s got %q, %q, %v", tc.reason, clean, user, err)
			}
		})
	}
}
