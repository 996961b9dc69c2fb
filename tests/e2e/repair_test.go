package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

func TestARestartFindsTheArtifactsAgain(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	repository := s.upstream.Repository("app")
	commit := repository.Commit("main", "First", oneFile("replicas: 1\n"))
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	s.create("app", server.URL("app"))
	before := s.ready("app", mainAt(commit))
	s.toldNewArtifact("app", mainAt(commit))
	s.stop()
	server.Reset()
	s.start()
	after := s.ready("app", mainAt(commit))
	s.holds(after.Status.Artifact, repository.Tree(commit))
	if server.Count(upstream.Fetch) != 0 {
		t.Errorf("a restart fetched again: %+v", server.Requests())
	}
	if was, is := before.Status.Artifact, after.Status.Artifact; was.Digest != is.Digest || was.Path != is.Path || !was.LastUpdateTime.Equal(&is.LastUpdateTime) {
		t.Errorf("artifact %s became %s", asJSON(was), asJSON(is))
	}
}

func TestALostStorageIsRebuiltInParallelWithTheSameBytes(t *testing.T) {
	t.Parallel()
	const objects, together = 20, 5
	s := newRunning(t)
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	commits := map[string]string{}
	before := map[string]*sourcev1.GitRepository{}
	for i := range objects {
		name := fmt.Sprintf("app-%02d", i)
		commits[name] = s.upstream.Repository(name).Commit("main", "First", oneFile(name))
		s.create(name, server.URL(name))
	}
	for name, commit := range commits {
		before[name] = s.ready(name, mainAt(commit))
	}
	s.stop()
	s.wipe()

	// The first fetches wait for each other: one at a time would wait for ever.
	var waiting atomic.Int32
	gate := make(chan struct{})
	server.Before(upstream.Fetch, func() {
		if waiting.Add(1) == together {
			close(gate)
		}
		<-gate
	})
	s.start()
	for name, commit := range commits {
		after := s.ready(name, mainAt(commit))
		if was, is := before[name].Status.Artifact, after.Status.Artifact; was.Digest != is.Digest || was.Path != is.Path {
			t.Errorf("artifact %s became %s", asJSON(was), asJSON(is))
		}
	}
}

func TestAStorageLostUnderTheRunningProgramIsRebuilt(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	repository := s.upstream.Repository("app")
	commit := repository.Commit("main", "First", oneFile("replicas: 1\n"))
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	s.create("app", server.URL("app"))
	s.create("frequent", server.URL("app"), every(time.Second))
	before := map[string]*sourcev1.GitRepository{"app": s.ready("app", mainAt(commit)), "frequent": s.ready("frequent", mainAt(commit))}

	for range 2 {
		s.wipe()
		s.request("app") // The other one is due by itself.
		for name, obj := range before {
			s.eventually(name+" is served again", func(ctx context.Context) (bool, string) {
				answer, err := get(ctx, obj.Status.Artifact.URL)
				if err != nil {
					return false, err.Error()
				}
				return answer.status == http.StatusOK, fmt.Sprint(answer.status)
			})
			after := s.ready(name, mainAt(commit))
			if was, is := obj.Status.Artifact, after.Status.Artifact; was.Digest != is.Digest || was.Path != is.Path {
				t.Errorf("artifact %s became %s", asJSON(was), asJSON(is))
			}
			s.holds(after.Status.Artifact, repository.Tree(commit))
		}
	}
	s.eventually("the storage is in order", func(context.Context) (bool, string) {
		found, wrong := readDisk(s.storage)
		left := append(found.strays(), wrong...)
		return len(left) == 0 && len(found.files) == 2, strings.Join(left, "\n")
	})
}

// wipe empties the storage folder, also while the program puts new files there.
func (s *scene) wipe() {
	s.t.Helper()
	entries, err := os.ReadDir(s.storage)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, entry := range entries {
		err := os.RemoveAll(filepath.Join(s.storage, entry.Name()))
		for range 100 {
			if !errors.Is(err, syscall.ENOTEMPTY) {
				break
			}
			err = os.RemoveAll(filepath.Join(s.storage, entry.Name()))
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

func TestADamagedFileIsNeverServedAndMadeAgain(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	repository := s.upstream.Repository("app")
	commit := repository.Commit("main", "First", oneFile(noise(4096, 7)))
	s.create("app", s.upstream.HTTP(upstream.HTTPOptions{}).URL("app"))
	artifact := s.ready("app", mainAt(commit)).Status.Artifact
	file := filepath.Join(s.storage, ".sluice/blobs/sha256", digest.Digest(artifact.Digest).Encoded())

	damages := map[string]struct {
		reason string
		harm   func(info os.FileInfo) error
	}{
		"flipped":   {"A byte changes where it lies, and the file keeps its time.", func(info os.FileInfo) error { return flip(file, info) }},
		"truncated": {"The file loses its end.", func(info os.FileInfo) error { return os.Truncate(file, info.Size()/2) }},
		"grown":     {"The file gets more bytes.", func(info os.FileInfo) error { return os.Truncate(file, info.Size()+1) }},
		"replaced":  {"Another file takes its place.", func(os.FileInfo) error { return replace(file, "not an artifact") }},
		"removed":   {"The file is gone.", func(os.FileInfo) error { return os.Remove(file) }},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			t.Log(damage.reason)
			s := s.in(t)
			info, err := os.Stat(file)
			if err == nil {
				err = damage.harm(info)
			}
			if err != nil {
				t.Fatal(err)
			}
			if name == "removed" {
				// Nothing tells a server that a file is gone, until somebody asks for the object.
				s.request("app")
			}
			s.eventually("the file is made again", func(ctx context.Context) (bool, string) {
				answer, err := get(ctx, artifact.URL)
				if err != nil {
					return false, err.Error()
				}
				got := digest.FromBytes(answer.body).String()
				if answer.status == http.StatusOK && got != artifact.Digest {
					t.Fatalf("served %d bytes with digest %s under the digest %s", len(answer.body), got, artifact.Digest)
				}
				return answer.status == http.StatusOK, fmt.Sprint(answer.status)
			})
			s.holds(s.ready("app", mainAt(commit)).Status.Artifact, repository.Tree(commit))
		})
	}
}

// flip turns a bit in the middle of a file round, and sets the file's time back.
func flip(name string, info os.FileInfo) error {
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	at := len(content) / 2
	if _, err := file.WriteAt([]byte{content[at] ^ 1}, int64(at)); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Chtimes(name, info.ModTime(), info.ModTime())
}

func replace(name, content string) error {
	if err := os.WriteFile(name+".new", []byte(content), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

func TestAForgedStatusIsRepaired(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	commit := s.upstream.Repository("app").Commit("main", "First", oneFile("replicas: 1\n"))
	secret := s.upstream.Repository("other").Commit("main", "First", oneFile("replicas: 2\n"))
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	s.create("app", server.URL("app"))
	s.create("other", server.URL("other"))
	good, other := s.ready("app", mainAt(commit)), s.ready("other", mainAt(secret))

	cases := map[string]struct {
		reason string
		forge  func(*sourcev1.GitRepositoryStatus)
	}{
		"other-object": {"Status points to the file of another object.", func(status *sourcev1.GitRepositoryStatus) {
			status.Artifact = other.Status.Artifact.DeepCopy()
		}},
		"other-host": {"Status points to another server.", func(status *sourcev1.GitRepositoryStatus) {
			status.Artifact.URL = strings.Replace(status.Artifact.URL, "127.0.0.1", "192.0.2.1", 1)
		}},
		"other-digest": {"Status names another digest and checksum.", func(status *sourcev1.GitRepositoryStatus) {
			status.Artifact.Digest, status.ContentConfigChecksum = other.Status.Artifact.Digest, "sha256:0"
		}},
		"climbing":    {"Status names a path that leaves the storage.", func(status *sourcev1.GitRepositoryStatus) { status.Artifact.Path = "../../etc/passwd" }},
		"no-artifact": {"Status has lost the artifact.", func(status *sourcev1.GitRepositoryStatus) { status.Artifact = nil }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Log(c.reason)
			s := s.in(t)
			before := s.get("app")
			forged := before.DeepCopy()
			c.forge(&forged.Status)
			if err := env.Client.Status().Patch(t.Context(), forged, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
			// The interval is an hour, and nobody asks for it.
			repaired := s.until("app", "status names what is stored", func(obj *sourcev1.GitRepository) bool {
				return equality.Semantic.DeepEqual(obj.Status.Artifact, good.Status.Artifact)
			})
			sameArtifact(t, good, repaired)
			s.ready("app", mainAt(commit))
			if repaired.Status.ContentConfigChecksum != good.Status.ContentConfigChecksum {
				t.Errorf("contentConfigChecksum is %s, want %s", repaired.Status.ContentConfigChecksum, good.Status.ContentConfigChecksum)
			}
			s.download(other.Status.Artifact)
		})
	}
}
