package git

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// refuser is a server that lacks some commits, and says so in its own words. Where these name a commit, it is the first.
type refuser struct {
	words string
	refs  []string // that are listed
	lacks []string
	pack  []byte
	asked atomic.Int64
}

func (s *refuser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", uploadPack.mediaType("advertisement"))
		_, _ = w.Write(appendFlush(appendLine(appendLine(appendLine(nil, "version 2"), "ls-refs"), "fetch=shallow")))
		return
	}
	w.Header().Set("Content-Type", uploadPack.mediaType("result"))
	question, _ := io.ReadAll(r.Body)
	if strings.Contains(string(question), "command=ls-refs") {
		var answer []byte
		for _, ref := range s.refs {
			answer = appendLine(answer, "%s", ref)
		}
		_, _ = w.Write(appendFlush(answer))
		return
	}
	s.asked.Add(1)
	for _, hash := range s.lacks {
		if strings.Contains(string(question), "want "+hash) {
			_, _ = w.Write(appendLine(nil, "ERR %s", strings.ReplaceAll(s.words, "ID", hash)))
			return
		}
	}
	answer := appendLine(nil, "packfile")
	answer = fmt.Appendf(answer, "%04x\x01%s", len(s.pack)+5, s.pack)
	_, _ = w.Write(appendFlush(answer))
}

// TestServersSayInTheirOwnWordsWhatTheyLack, and some do not say it at all: then their refs do.
func TestServersSayInTheirOwnWordsWhatTheyLack(t *testing.T) {
	t.Parallel()
	const count, there = 40, 5
	w, empty := &packWriter{t: t}, plumbing.ComputeHash(plumbing.TreeObject, nil)
	w.add(plumbing.TreeObject, 0, nil, nil)
	var wants []Want
	var listed, hashes []string
	for i := range count {
		text := strings.Replace(commitOf(), plumbing.ZeroHash.String(), empty.String(), 1) + fmt.Sprint(i)
		want := Want{Hash: hashOf(text).String(), Ref: fmt.Sprint("refs/heads/", i)}
		if i < there {
			w.add(plumbing.CommitObject, len(text), nil, []byte(text))
		}
		wants, listed, hashes = append(wants, want), append(listed, want.Hash+" "+want.Ref), append(hashes, want.Hash)
	}
	for name, c := range map[string]struct {
		reason string
		words  string
		refs   []string
		lacks  []string
		want   error
		asked  int64 // once more with a fresh advertisement before it is given up
	}{
		"nothing":          {"It has all.", "", listed, nil, nil, 1},
		"git":              {"Git names the commit, and the refs tell of the others.", "upload-pack: not our ref ID", listed[:there], hashes[there:], nil, 2},
		"jgit":             {"So does JGit.", "want ID not valid", listed[:there], hashes[there:], nil, 2},
		"no name":          {"The refs are enough.", "not our ref", listed[:there], hashes[there:], nil, 2},
		"one by one":       {"What is listed and lacking is found out one by one.", "not our ref ID", slices.Concat(listed[:there], listed[:10][there:]), hashes[there:], nil, 6},
		"without end":      {"Not for ever.", "not our ref ID", listed, hashes[there:], ErrRefNotFound, maxRefusals + 1},
		"no name, no refs": {"Nobody can tell.", "not our ref", listed, hashes[there:], ErrRefNotFound, 3},
		"another name":     {"It is about something that nobody wants.", "not our ref " + strings.Repeat("ab", 20), listed, hashes[there:], ErrRefNotFound, 3},
		"another reason":   {"It is about something else.", "repository ID is locked", listed, hashes[there:], nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &refuser{words: c.words, refs: c.refs, lacks: c.lacks, pack: w.bytes()}
			server := httptest.NewServer(s)
			t.Cleanup(server.Close)
			asking := wants
			if c.lacks == nil {
				asking = wants[:there]
			}
			commits, err := reachingClient(t, Options{}).FetchAll(t.Context(), Remote{URL: server.URL + "/app"}, asking)
			if isOther := name == "another reason"; isOther && (err == nil || errors.Is(err, ErrRefNotFound)) || !isOther && !errors.Is(err, c.want) {
				t.Fatalf("%s want %v, got %v", c.reason, c.want, err)
			}
			if s.asked.Load() != c.asked {
				t.Errorf("%s the server was asked %d times, want %d", c.reason, s.asked.Load(), c.asked)
			}
			for i, commit := range commits {
				if (commit != nil) != (i < there) {
					t.Errorf("%s commit %d is %v", c.reason, i, commit)
				}
			}
			if err := CloseAll(commits); err != nil {
				t.Error(err)
			}
		})
	}
}
