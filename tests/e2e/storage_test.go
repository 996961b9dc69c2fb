package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/upstream"
)

func TestAFullStorageKeepsTheOldArtifactAndHealsWithRoom(t *testing.T) {
	t.Parallel()
	disk := newSmallDisk(t)
	s := newScene(t)
	s.storage, s.prepare = disk.storage, disk.prepare
	s.start()
	repository := s.upstream.Repository("app")
	first := repository.Commit("main", "First", oneFile(noise(50<<10, 1)))
	s.create("app", s.upstream.HTTP(upstream.HTTPOptions{}).URL("app"))
	good := s.ready("app", mainAt(first))

	makeRoom := disk.fill(t, s.manager.Pid(), 128<<10)
	second := repository.Commit("main", "Second", oneFile(noise(300<<10, 2)))
	s.request("app")
	full := trouble{sourcev1.StorageOperationFailedCondition, sourcev1.ArchiveOperationFailedReason, "no space left on device"}
	bad := s.failing("app", full)
	sameArtifact(t, good, bad)
	s.holds(bad.Status.Artifact, repository.Tree(first))
	for range 3 {
		s.reconcile("app") // Attempts that fail must not eat up what room is left.
	}
	s.failing("app", full)

	makeRoom()
	s.holds(s.ready("app", mainAt(second)).Status.Artifact, repository.Tree(second))
	s.eventually("nothing is left of the attempts", func(context.Context) (bool, string) {
		found, wrong := readDisk(disk.seen(s.manager.Pid()))
		left := append(found.strays(), wrong...)
		return len(left) == 0, strings.Join(left, "\n")
	})
}

func TestASecondWriterReportsAndDoesNotWrite(t *testing.T) {
	t.Parallel()
	s, intruder := newRunning(t), newScene(t)
	commit := s.upstream.Repository("app").Commit("main", "First", oneFile("replicas: 1\n"))
	server := s.upstream.HTTP(upstream.HTTPOptions{})
	s.create("app", server.URL("app"))
	s.ready("app", mainAt(commit))

	intruder.storage = s.storage
	intruder.start()
	intruder.create("app", server.URL("app"))
	intruder.failing("app", trouble{sourcev1.StorageOperationFailedCondition, sourcev1.ArchiveOperationFailedReason, "in use by another process"})
	if obj := intruder.get("app"); obj.Status.Artifact != nil || conditions.IsTrue(obj, sourcev1.ArtifactInStorageCondition) {
		t.Errorf("the second process claims an artifact: %s", asJSON(obj.Status))
	}
	if _, err := os.Stat(filepath.Join(s.storage, ".sluice/records/gitrepository", intruder.namespace)); !os.IsNotExist(err) {
		t.Errorf("the second process wrote: %v", err)
	}
	s.download(s.reconcile("app").Status.Artifact)

	s.stop()
	intruder.ready("app", mainAt(commit))
	found, wrong := readDisk(s.storage)
	if len(wrong) > 0 || len(found.files) != 2 {
		t.Errorf("after the change of writers: %v, files %v", wrong, found.files)
	}
}

func TestRetentionKeepsTwoArtifactsAtMost(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	repository := s.upstream.Repository("app")
	repository.Commit("main", "Commit 0", oneFile("0"))
	s.create("app", s.upstream.HTTP(upstream.HTTPOptions{}).URL("app"))
	var previous *sourcev1.GitRepository
	for i := range 4 {
		commit := repository.Commit("main", fmt.Sprintf("Commit %d", i+1), oneFile(fmt.Sprint(i+1)))
		s.request("app")
		current := s.ready("app", mainAt(commit))
		if previous != nil {
			// Who has read status a moment ago can still get what it named.
			s.download(previous.Status.Artifact)
		}
		previous = current
	}
	s.eventually("two artifacts are kept", func(context.Context) (bool, string) {
		found, wrong := readDisk(s.storage)
		return len(found.files) == 2 && len(found.blobs) == 2 && len(wrong) == 0, fmt.Sprint(found.files, found.blobs, wrong)
	})
	s.told("app", "Normal", sourcev1.GarbageCollectionSucceededReason, "garbage collected 1 artifacts")
}
