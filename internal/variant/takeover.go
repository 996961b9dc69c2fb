package variant

import (
	"bytes"
	"context"
	"strings"

	"sluice.dev/sluice/internal/kpt"
)

// takeOver makes the request one for a package that no variant has marked as its own: somebody else made it, by hand, with kpt, or
// by Porch. What a PackageVariant of Porch had put into its pipeline counts as the variant's own. Where the package is exactly what
// the configuration makes of the upstream that its lock names, this is what it was made as.
func (r Request) takeOver(ctx context.Context, renderer Renderer) (Request, error) {
	resources, err := kpt.Open(r.Local)
	if err != nil {
		return r, err
	}
	kptfile, err := resources.Kptfile("")
	if err != nil {
		return r, err
	}
	if kptfile.Annotations()[kpt.AnnotationVariant] != "" {
		return r, nil
	}
	r.isUnmarked = true
	kptfile.AdoptFunctions(r.Next.Config.Owner, r.lockedKptfile())
	if r.Local, err = resources.Package(); err != nil {
		return r, err
	}
	lock := kptfile.Lock()
	if lock == nil || r.Locked == nil {
		return r, nil
	}
	last := r
	last.Last = &Version{Config: r.Next.Config, Blueprint: Blueprint{
		Repo: lock.Repo, Directory: lock.Directory, Ref: lock.Ref, Commit: lock.Commit, Package: r.Locked,
	}}
	l, err := last.readLocal()
	if err != nil {
		return r, err
	}
	made, err := last.last(ctx, renderer, l, nil)
	switch {
	case err != nil && passing(ctx, err):
		return r, err
	case err == nil && same(made, r.Local):
		return last, nil
	}
	return r, nil
}

// lockedKptfile is that of the upstream package, nil where there is none that can be read.
func (r Request) lockedKptfile() *kpt.Kptfile {
	file, found := r.Locked[kpt.KptfileName]
	if !found {
		return nil
	}
	resources, err := kpt.Open(kpt.Package{kpt.KptfileName: file})
	if err != nil {
		return nil
	}
	kptfile, err := resources.Kptfile("")
	if err != nil {
		return nil
	}
	return kptfile
}

// stands tells whether the package that is there is what was made, and lacks nothing but the notes. Layout, comments and how the
// upstream is spelt do not count.
func (r Request) stands(made kpt.Package) bool {
	return r.isUnmarked && r.sameOrigin(made, r.Local) && same(made, r.Local)
}

// sameOrigin tells whether both packages say that they are of the same state of the same upstream.
func (r Request) sameOrigin(made, there kpt.Package) bool {
	a, b := lockOf(made), lockOf(there)
	if a == nil || b == nil || !SameRepository(a.Repo, b.Repo) || a.Ref != b.Ref || strings.Trim(a.Directory, "/") != strings.Trim(b.Directory, "/") {
		return false
	}
	// A commit upstream that left the package as it was makes no other one of it.
	return a.Commit == b.Commit || r.Locked != nil && r.Locked.Equal(r.Next.Blueprint.Package)
}

func lockOf(p kpt.Package) *kpt.Lock {
	facts, err := kpt.ReadFacts(p[kpt.KptfileName].Content)
	if err != nil {
		return nil
	}
	return facts.Lock
}

// SameRepository tells whether two URLs are of one repository: kpt and Porch append .git to some.
func SameRepository(a, b string) bool {
	return strings.TrimSuffix(strings.TrimRight(a, "/"), ".git") == strings.TrimSuffix(strings.TrimRight(b, "/"), ".git")
}

// same tells whether both packages have the same files, and the same objects in those that differ. Of Kptfiles at the root, notes
// and the upstream do not count.
func same(a, b kpt.Package) bool {
	if len(a) != len(b) {
		return false
	}
	for name, file := range a {
		other, found := b[name]
		if !found || file.Mode != other.Mode {
			return false
		}
		if !bytes.Equal(file.Content, other.Content) && !sameObjects(name, file, other) {
			return false
		}
	}
	return true
}

func sameObjects(name string, a, b kpt.File) bool {
	if !kpt.HoldsYAML(name) {
		return false
	}
	first, second := plain(name, a), plain(name, b)
	if len(first) == 0 || len(first) != len(second) {
		return false
	}
	for i := range first {
		if !kpt.SameValue(first[i], second[i]) {
			return false
		}
	}
	return true
}

// plain are the documents of a file, without what does not count; none where it cannot be read.
func plain(name string, file kpt.File) []*kpt.Resource {
	resources, err := kpt.OpenDocuments(kpt.Package{name: file})
	if err != nil {
		return nil
	}
	if name != kpt.KptfileName {
		return resources.Items
	}
	kptfile, err := resources.Kptfile("")
	if err != nil || note(resources, nil) != nil {
		return nil
	}
	kptfile.SetUpstream(kpt.Upstream{Strategy: "none"})
	kptfile.SetLock(kpt.Lock{})
	return resources.Items
}
