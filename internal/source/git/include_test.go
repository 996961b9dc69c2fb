package git_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/opencontainers/go-digest"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/git"
	gitsource "sluice.dev/sluice/internal/source/git"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/storage"
)

// artifacts are of other GitRepository objects: the name's first byte tells which.
type artifacts struct {
	bodies map[byte][]byte
	opened atomic.Int64
}

func newArtifacts(t *testing.T, files int, names string) *artifacts {
	t.Helper()
	a := &artifacts{bodies: map[byte][]byte{}}
	for _, name := range []byte(names) {
		content := fstest.MapFS{}
		for i := range files {
			content[fmt.Sprintf("%c-%d", name, i)] = &fstest.MapFile{Data: []byte("content")}
		}
		var body bytes.Buffer
		if err := archive.Write(t.Context(), &body, content, nil, archive.Limits{}); err != nil {
			t.Fatal(err)
		}
		a.bodies[name] = body.Bytes()
	}
	return a
}

func (a *artifacts) Included(_ context.Context, _ *sourcev1.GitRepository, name string) (storage.Artifact, error) {
	return storage.Artifact{Path: name[:1], Revision: "main@sha1:" + name[:1], Digest: digest.FromBytes(a.bodies[name[0]])}, nil
}

func (a *artifacts) Body(_ context.Context, artifact storage.Artifact) (io.ReadCloser, error) {
	a.opened.Add(1)
	return io.NopCloser(bytes.NewReader(a.bodies[artifact.Path[0]])), nil
}

func TestIncludesAreOpenedOnceAndBoundedTogether(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		names  []string
		opened int64
		want   error
	}{
		"One":            {[]string{"a"}, 1, nil},
		"The same twice": {[]string{"a1", "a2", "b1", "a3", "b2"}, 2, nil},
		"Too many files": {[]string{"a", "b", "c"}, 3, archive.ErrLimit},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, client := newHistory(t), newClient(t)
			others := newArtifacts(t, 100, "abc")
			opener := gitsource.NewOpener(gitsource.Options{
				Client: client, Credentials: anonymous{}, Artifacts: others, Limits: archive.Limits{MaxFiles: 250}, TempDir: t.TempDir(),
			})
			obj := &sourcev1.GitRepository{Spec: sourcev1.GitRepositorySpec{URL: h.server.URL("subject"), Reference: &sourcev1.GitRepositoryRef{Branch: "main"}}}
			for _, name := range c.names {
				obj.Spec.Include = append(obj.Spec.Include, sourcev1.GitRepositoryInclude{
					GitRepositoryRef: meta.LocalObjectReference{Name: name}, ToPath: "in/" + name,
				})
			}
			session, err := opener.Open(t.Context(), obj)
			if err != nil {
				t.Fatal(err)
			}
			selected, err := session.Resolve(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			content, err := session.Fetch(t.Context(), selected, "")
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if opened := others.opened.Load(); opened != c.opened {
				t.Errorf("%d artifacts were opened, want %d", opened, c.opened)
			}
			if err == nil {
				if err := content.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestIncludesAreCounted(t *testing.T) {
	t.Parallel()
	obj := &sourcev1.GitRepository{Spec: sourcev1.GitRepositorySpec{URL: "https://git.example.com/x", Include: make([]sourcev1.GitRepositoryInclude, 101)}}
	_, err := newOpener(t).Open(t.Context(), obj)
	if f := failure.Of(err); f == nil || f.Disposition != failure.Stalls {
		t.Errorf("101 includes: %v", err)
	}
}

func newClient(t *testing.T, change ...func(*git.Options)) *git.Client {
	t.Helper()
	options := git.Options{Transport: transport.New(transport.Options{AllowLoopback: true}), TempDir: t.TempDir()}
	for _, c := range change {
		c(&options)
	}
	client, err := git.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
