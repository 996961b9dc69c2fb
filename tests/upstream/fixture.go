package upstream

import "context"

// TB is what a Fixture needs of *testing.T.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(run func())
	TempDir() string
	Context() context.Context
}

// Fixture makes upstreams for a test: what fails ends the test, and everything is closed with it.
type Fixture struct {
	t TB
	// Root is the folder of the repositories.
	Root string
}

// ForTest makes a Fixture with a folder of its own.
func ForTest(t TB) *Fixture {
	t.Helper()
	return &Fixture{t: t, Root: t.TempDir()}
}

// Repository makes an empty repository under Root.
func (f *Fixture) Repository(name string, initArgs ...string) *Edited {
	f.t.Helper()
	repository, err := NewRepository(f.t.Context(), f.Root, name, initArgs...)
	return &Edited{Repository: need(f.t, repository, err), t: f.t}
}

// HTTP serves Root.
func (f *Fixture) HTTP(options HTTPOptions) *GitHTTP {
	f.t.Helper()
	server, err := ServeHTTP(f.t.Context(), f.Root, options)
	need(f.t, server, err)
	f.t.Cleanup(func() { server.Close() })
	return server
}

// SSH serves Root over SSH.
func (f *Fixture) SSH(options SSHOptions) *GitSSH {
	f.t.Helper()
	server, err := ServeSSH(f.t.Context(), f.Root, options)
	need(f.t, server, err)
	f.t.Cleanup(func() { server.Close() })
	return server
}

// Key generates an SSH key.
func (f *Fixture) Key(kind KeyType) *SSHKey {
	f.t.Helper()
	key, err := GenerateKey(kind)
	return need(f.t, key, err)
}

// Sink starts a Sink.
func (f *Fixture) Sink(options SinkOptions) *Sink {
	f.t.Helper()
	sink, err := NewSink(f.t.Context(), options)
	need(f.t, sink, err)
	f.t.Cleanup(func() { sink.Close() })
	return sink
}

// CA generates an authority.
func (f *Fixture) CA() *CA {
	f.t.Helper()
	ca, err := NewCA("upstream")
	return need(f.t, ca, err)
}

// Edited is a Repository whose edits end the test when they fail.
type Edited struct {
	*Repository
	// Moved is called after each edit of a branch or tag; may be nil. It stands for the webhook that a server calls.
	Moved func()

	t TB
}

// moved tells that a branch or tag was edited.
func (e *Edited) moved() {
	if e.Moved != nil {
		e.Moved()
	}
}

// AcceptPushes is Repository.AcceptPushes.
func (e *Edited) AcceptPushes() {
	e.t.Helper()
	need(e.t, e, e.Repository.AcceptPushes())
}

// Hook is Repository.Hook.
func (e *Edited) Hook(name, script string) {
	e.t.Helper()
	need(e.t, name, e.Repository.Hook(name, script))
}

// Commit is Repository.Commit.
func (e *Edited) Commit(branch, message string, files Files) string {
	e.t.Helper()
	id, err := e.Repository.Commit(branch, message, files)
	defer e.moved()
	return need(e.t, id, err)
}

// Rewrite is Repository.Rewrite.
func (e *Edited) Rewrite(branch, message string, files Files) string {
	e.t.Helper()
	id, err := e.Repository.Rewrite(branch, message, files)
	defer e.moved()
	return need(e.t, id, err)
}

// Tag is Repository.Tag.
func (e *Edited) Tag(name, hash string, annotated bool) string {
	e.t.Helper()
	id, err := e.Repository.Tag(name, hash, annotated)
	defer e.moved()
	return need(e.t, id, err)
}

// SetRef is Repository.SetRef.
func (e *Edited) SetRef(ref, hash string) {
	e.t.Helper()
	need(e.t, ref, e.Repository.SetRef(ref, hash))
	e.moved()
}

// DeleteRef is Repository.DeleteRef.
func (e *Edited) DeleteRef(ref string) {
	e.t.Helper()
	need(e.t, ref, e.Repository.DeleteRef(ref))
	e.moved()
}

// RenameBranch gives a branch another name, in one push: nobody sees it twice.
func (e *Edited) RenameBranch(from, to string) {
	e.t.Helper()
	e.Raw("push", "--quiet", "--atomic", ".", from+":refs/heads/"+to, ":refs/heads/"+from)
	e.moved()
}

// Bulk is Repository.Bulk.
func (e *Edited) Bulk(branch string, files int, size int64) string {
	e.t.Helper()
	id, err := e.Repository.Bulk(branch, files, size)
	return need(e.t, id, err)
}

// Object is Repository.Object.
func (e *Edited) Object(kind string, content []byte) string {
	e.t.Helper()
	id, err := e.Repository.Object(kind, content)
	return need(e.t, id, err)
}

// RawTree is Repository.RawTree.
func (e *Edited) RawTree(entries ...Entry) string {
	e.t.Helper()
	id, err := e.Repository.RawTree(entries...)
	return need(e.t, id, err)
}

// CommitTree is Repository.CommitTree.
func (e *Edited) CommitTree(tree, message string, parents ...string) string {
	e.t.Helper()
	id, err := e.Repository.CommitTree(tree, message, parents...)
	return need(e.t, id, err)
}

// Raw is Repository.Raw.
func (e *Edited) Raw(args ...string) string {
	e.t.Helper()
	out, err := e.Repository.Raw(args...)
	return need(e.t, out, err)
}

// Tree is Repository.Tree.
func (e *Edited) Tree(commit string) Files {
	e.t.Helper()
	files, err := e.Repository.Tree(commit)
	return need(e.t, files, err)
}

func need[T any](t TB, value T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatalf("upstream: %v", err)
	}
	return value
}
