package packages

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/kpt"
)

// many are targets that change, each with a file of a long name; every tenth has conflicts, and every seventh stays as it is.
func many(count int) (all []foreseen) {
	for i := range count {
		t := foreseen{content: fmt.Sprint(i), TargetPreview: packagesv1.TargetPreview{
			Target: fmt.Sprintf("Repository r%05d, app", i), Repo: fmt.Sprintf("r%05d", i), Package: "app", Change: packagesv1.PreviewChanged,
			Files:   &packagesv1.FileChanges{Added: 1, Names: []packagesv1.FileChange{{Change: "Added", Path: strings.Repeat("x", 2000)}}},
			Objects: &packagesv1.ObjectChanges{Added: 1},
		}}
		switch {
		case i%10 == 0:
			t.ConflictCount, t.Conflicts = 5, slices.Repeat([]packagesv1.Conflict{{File: "a.yaml", Local: "ours"}}, 5)
		case i%7 == 0:
			t.Change = packagesv1.PreviewUnchanged
		}
		all = append(all, t)
	}
	return all
}

// TestAPreviewIsBounded in the status and in the artifact, which says what it leaves out; its digest is that of all of it.
func TestAPreviewIsBounded(t *testing.T) {
	t.Parallel()
	p, text := (&foresight{targets: many(10_000)}).report("")
	if len(text) > maxPreviewBytes+10_000*400 || bytes.Count(text, []byte("\n")) != 10_000 {
		t.Errorf("the artifact has %d bytes and %d lines", len(text), bytes.Count(text, []byte("\n")))
	}
	if cut := bytes.Count(text, []byte(`"cut":true`)); cut == 0 || cut != int(p.Cut) || cut > 9_000 {
		t.Errorf("%d lines are cut, and the status says %d", cut, p.Cut)
	}
	if len(p.Targets) != packagesv1.MaxPreviewed || p.Conflicted != 1_000 || p.Changed+p.Unchanged != 10_000 {
		t.Errorf("the status lists %d: %+v", len(p.Targets), p)
	}
	for _, listed := range p.Targets {
		if listed.ConflictCount != 5 || len(listed.Conflicts) != packagesv1.MaxPreviewedConflicts || listed.Conflicts[0].Local != "" || listed.Files.Names != nil {
			t.Fatalf("it lists %+v", listed)
		}
	}
	again := many(10_000)
	slices.Reverse(again)
	if other, _ := (&foresight{targets: again}).report("other"); other.Digest != p.Digest {
		t.Error("the order of targets changes the digest")
	}
	again[0].content = "another package"
	if other, _ := (&foresight{targets: again}).report(""); other.Digest == p.Digest {
		t.Error("another package does not change the digest")
	}
	if waits, _ := (&foresight{targets: again, pending: 1}).report(""); waits.Digest != "" || waits.Pending != 1 {
		t.Errorf("a preview that is not whole has a digest: %+v", waits)
	}
}

// TestPreviewsTakeBoundedMemory: what there is no room for is cut to its counts, and room is given back.
func TestPreviewsTakeBoundedMemory(t *testing.T) {
	t.Parallel()
	large := func() map[string]*worked {
		return map[string]*worked{"a": {
			size: maxPreviewMemory * 2 / 3, content: "same", files: &packagesv1.FileChanges{Added: 2, Names: make([]packagesv1.FileChange, 2)},
			objects: &packagesv1.ObjectChanges{},
		}}
	}
	p, first, second := newPreviews(), types.NamespacedName{Name: "first"}, types.NamespacedName{Name: "second"}
	p.keep(first, large())
	p.keep(second, large())
	if p.of(first)["a"].isCut || !p.of(second)["a"].isCut {
		t.Error("the second is the one that there is no room for")
	}
	want := &packagesv1.FileChanges{Added: 2}
	if diff := cmp.Diff(want, p.of(second)["a"].files); diff != "" || p.of(second)["a"].content != "same" {
		t.Errorf("what is left of it: %s", diff)
	}
	p.keep(first, nil)
	p.keep(second, large())
	if p.of(second)["a"].isCut || len(p.sets) != 1 {
		t.Error("room is not given back")
	}
	p.keep(second, p.of(second))
	if p.keep(second, nil); p.size != 0 {
		t.Errorf("%d bytes are left of nothing", p.size)
	}
}

func TestContentDigestTellsFilesApart(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range []kpt.Package{
		{}, {"a": {Content: []byte("bc")}}, {"a": {Content: []byte("b")}}, {"ab": {Content: []byte("c")}}, {"a": {Content: []byte("bc"), Mode: 0o755}},
	} {
		seen[contentDigest(p)] = true
	}
	if len(seen) != 5 {
		t.Errorf("%d digests of five packages", len(seen))
	}
}
