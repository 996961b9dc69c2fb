package git_test

import (
	"fmt"
	"testing"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

// TestAPushLeavesTheOthersInTheCache: what nobody needs any more makes room for what is pushed, before what is needed does.
func TestAPushLeavesTheOthersInTheCache(t *testing.T) {
	t.Parallel()
	w := newWriter(t, "http", keeping(t.TempDir(), &hows{}), func(o *git.Options) { o.MaxCacheBytes = 32 << 20 })
	large := noise(9 << 20)
	at := map[string]string{"refs/heads/main": w.Commit("main", "main", upstream.Text(map[string]string{"large": large[:4<<20]}))}
	for i := range 5 {
		branch := fmt.Sprint("draft-", i)
		from := 5<<20 + i*(300<<10)
		at["refs/heads/"+branch] = w.Commit(branch, branch, upstream.Text(map[string]string{"pkg/file": large[from : from+300<<10]}))
	}
	fetchThem := func() (received int64) {
		var wants []git.Want
		for ref, hash := range at {
			wants = append(wants, git.Want{Ref: ref, Hash: hash})
		}
		return fetchAll(t, w.client, w.remote, wants)[0].BytesReceived
	}
	fetchThem()
	for i := range 12 {
		const ref = "refs/heads/draft-0"
		objects := w.compose(at[ref])
		from := 7<<20 + i*(100<<10)
		next := w.commit(objects, commitOn(at[ref], folder("pkg", map[string]string{"file": large[from : from+300<<10]})))
		w.moves(git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: ref, Old: at[ref], New: next}}})
		at[ref] = next
		if received := fetchThem(); received > 0 {
			t.Fatalf("after push %d, %d bytes came", i, received)
		}
	}
}
