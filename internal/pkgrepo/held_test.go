package pkgrepo_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestMessagesAreNotHeld: of a commit a few words are remembered, however much it says. Nothing runs beside this test, as it
// looks how much memory is in use.
func TestMessagesAreNotHeld(t *testing.T) { //nolint:paralleltest // See above.
	const many, length = 300, 60 << 10
	s := newShop(t, overHTTP)
	head := s.Commit("main", "first", packaged("web"))
	tree := s.at(head + "^{tree}")
	var commits []string
	for i := range many {
		message := fmt.Sprintf("%d %s\n\nSluice-Package: web\nSluice-Workspace: w%d\n", i, strings.Repeat("x", length), i)
		text := fmt.Sprintf("tree %s\nparent %s\nauthor A <a@x> %d +0000\ncommitter A <a@x> %d +0000\n\n%s", tree, head, i, i, message)
		commits = append(commits, s.Object("commit", []byte(text)))
	}
	s.manyRefs(func(yield func(string, string)) {
		for i, commit := range commits {
			yield(fmt.Sprintf("refs/heads/drafts/web/w%d", i), commit)
		}
	})
	before := inUse()
	got := s.sync()
	if open := len(got.Package("web").Open); open != many {
		t.Fatalf("%d open changes", open)
	}
	if grown := inUse() - before; grown > many*length/2 {
		t.Errorf("%d bytes are held for %d open changes", grown, many)
	}
	runtime.KeepAlive(s)
}

// inUse is how much memory is.
func inUse() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // What has a finalizer goes with the second one.
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
