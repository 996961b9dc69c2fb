package helmrepository_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/utils/clock"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/helm"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/helmrepository"
	"sluice.dev/sluice/internal/source/sourcetest"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/tests/upstream/files"
)

const childURL, childStore = "SLUICE_HELM_CHILD_URL", "SLUICE_HELM_CHILD_STORE"

func TestMain(m *testing.M) {
	if address := os.Getenv(childURL); address != "" {
		if err := follow(context.Background(), address, os.Getenv(childStore)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// follow takes one object through the pipeline, as a process of its own.
func follow(ctx context.Context, address, dir string) error {
	store, err := local.Open(dir, local.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	opener := helmrepository.NewOpener(helmrepository.Options{
		Client:      helm.NewClient(transport.New(transport.Options{AllowLoopback: true}), clock.RealClock{}, func(int64) {}),
		Credentials: &logins{}, Store: store,
	})
	obj := &sourcev1.HelmRepository{Spec: sourcev1.HelmRepositorySpec{URL: address}}
	pipeline := &source.Pipeline{Store: store, Clock: clock.RealClock{}, Observer: sourcetest.Silent{}}
	_, err = pipeline.Run(ctx, source.Subject{Object: killed, UID: "u", Timeout: time.Minute},
		func(ctx context.Context) (source.Session, error) { return opener.Open(ctx, obj) },
		func(context.Context, source.Change) error { return nil })
	return err
}

var killed = storage.Object{Kind: "helmrepository", Namespace: "n", Name: "a"}

// killPoints is at how many moments a process is killed: at few, unless SLUICE_TORTURE asks for all.
func killPoints() int {
	if os.Getenv("SLUICE_TORTURE") != "" {
		return 50
	}
	return 15
}

// TestAKilledCopyLeavesNothingTorn kills a process at many moments while it copies an index: what is stored is always whole, and
// the next process makes what an undisturbed one does.
func TestAKilledCopyLeavesNothingTorn(t *testing.T) {
	t.Parallel()
	server, dir, calm := files.New(t), t.TempDir(), t.TempDir()
	child := func(dir string) *exec.Cmd {
		command := exec.CommandContext(t.Context(), os.Args[0])
		command.Env = append(os.Environ(), childURL+"="+server.URL, childStore+"="+dir, "TMPDIR="+t.TempDir())
		command.Stderr = os.Stderr
		return command
	}
	lasts, points := time.Duration(0), killPoints()
	for point := range points {
		server.Put("/index.yaml", []byte(indexOf(2000+point)))
		began := time.Now()
		if lasts == 0 { // How long it takes, undisturbed and elsewhere.
			if err := child(calm).Run(); err != nil {
				t.Fatal(err)
			}
			lasts = time.Since(began)
		}
		victim := child(dir)
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lasts * time.Duration(point) / time.Duration(points))
		_ = victim.Process.Signal(syscall.SIGKILL) // It may have ended by itself.
		_ = victim.Wait()
		checkWhole(t, dir, point)
	}
	for _, dir := range []string{dir, calm} {
		if err := child(dir).Run(); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := checkWhole(t, dir, points), checkWhole(t, calm, points); got.Digest != want.Digest || got.Companion != want.Companion {
		t.Errorf("killed: %+v, undisturbed: %+v", got, want)
	}
}

// checkWhole reads what a store has of the object, which may be nothing.
func checkWhole(t *testing.T, dir string, point int) storage.Artifact {
	t.Helper()
	store, err := local.Open(filepath.Clean(dir), local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	record, err := store.Record(t.Context(), killed)
	if errors.Is(err, storage.ErrNotFound) {
		return storage.Artifact{}
	}
	if err != nil {
		t.Fatalf("point %d: %v", point, err)
	}
	for path, want := range map[string]string{
		record.Current.Path: record.Current.Digest.String(), record.Current.CompanionPath(): record.Current.Companion.Digest.String(),
	} {
		body, err := store.Open(t.Context(), path)
		if err != nil {
			t.Fatalf("point %d: %v", point, err)
		}
		hash := record.Current.Digest.Algorithm().Digester()
		_, err = io.Copy(hash.Hash(), body)
		_ = body.Close()
		if err != nil || hash.Digest().String() != want {
			t.Errorf("point %d: %s is %s: %v", point, path, hash.Digest(), err)
		}
	}
	return record.Current
}
