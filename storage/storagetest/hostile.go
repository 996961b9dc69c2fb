package storagetest

import (
	"strings"
	"testing"

	"sluice.dev/sluice/storage"
)

func hostilePathsNameNothing(t *testing.T, b *bench) {
	b.publish(t, podinfo, "a.tar.gz", "hello")
	dir := podinfo.Dir()
	for _, path := range []string{
		"", ".", "..", "/", dir, dir + "/", "/" + dir + "/a.tar.gz", dir + "/a.tar.gz/", dir + "//a.tar.gz",
		dir + "/./a.tar.gz", dir + "/../podinfo/a.tar.gz", "gitrepository/default/../default/podinfo/a.tar.gz",
		"../gitrepository/default/podinfo/a.tar.gz", "../../../../../../etc/passwd", "/etc/passwd", "etc/../../etc/passwd",
		".sluice/lock", ".sluice/records/gitrepository/default/podinfo/record.json", dir + "/.a.tar.gz", dir + "/..", dir + "/.",
		dir + "/a.tar.gz\x00", dir + "\\a.tar.gz", dir + "/..\\a.tar.gz", dir + "/a\n.tar.gz", dir + "/\xff", dir + "/b/c",
		dir + "/" + strings.Repeat("a", 256), strings.Repeat("a/", 5000),
	} {
		_, _, err := b.read(t.Context(), path)
		wantError(t, "Open "+path, err, storage.ErrNotFound)
		staged := b.stage(t, "evil")
		_, err = b.Publish(t.Context(), podinfo, staged, storage.Record{Current: storage.Artifact{Path: path}})
		wantError(t, "Publish "+path, err, storage.ErrInvalidPath)
		if err := b.Discard(t.Context(), staged); err != nil {
			t.Errorf("Discard: %v", err)
		}
	}
	for _, object := range []storage.Object{
		{},
		{Kind: "..", Namespace: "..", Name: ".."},
		{Kind: ".sluice", Namespace: "blobs", Name: "sha256"},
		{Kind: "gitrepository", Namespace: "default", Name: ".."},
		{Kind: "gitrepository", Namespace: "", Name: "podinfo"},
		{Kind: "gitrepository/default", Namespace: "podinfo", Name: "x"},
		{Kind: "gitrepository", Namespace: "default", Name: "podinfo/.."},
	} {
		wantError(t, "Delete "+object.String(), b.Delete(t.Context(), object), storage.ErrInvalidPath)
		_, err := b.Collect(t.Context(), object, "")
		wantError(t, "Collect "+object.String(), err, storage.ErrInvalidPath)
		_, err = b.Record(t.Context(), object)
		wantError(t, "Record "+object.String(), err, storage.ErrNotFound)
	}
	other := storage.Object{Kind: "gitrepository", Namespace: "default", Name: "other"}
	_, err := b.Publish(t.Context(), other, b.stage(t, "evil"), recordOf(podinfo, "b.tar.gz"))
	wantError(t, "Publish in another object's folder", err, storage.ErrInvalidPath)
	_, err = b.Publish(t.Context(), podinfo, storage.Staged{Digest: "sha256:../../x"}, recordOf(podinfo, "b.tar.gz"))
	if err == nil {
		t.Error("Publish of a digest that is none: want an error")
	}
	if err := b.Discard(t.Context(), storage.Staged{Digest: "../../x"}); err == nil {
		t.Error("Discard of a digest that is none: want an error")
	}
	b.holds(t, podinfo.File("a.tar.gz"), "hello")
}

func longNamesFit(t *testing.T, b *bench) {
	long := storage.Object{
		Kind: "gitrepository", Namespace: strings.Repeat("s", 63), Name: strings.Repeat("n.", 126) + "n",
	}
	file := strings.Repeat("f", 248) + ".tar.gz"
	b.publish(t, long, file, "hello")
	b.holds(t, long.File(file), "hello")
	if record := b.record(t, long); record.Current.Path != long.File(file) {
		t.Errorf("Record: got %+v", record)
	}
}
