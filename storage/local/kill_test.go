package local

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/storage"
)

// childMode says what the test binary is: one that is killed, that lives with a full disk, or that runs its tests bound by
// the modes of files.
const childMode = "SLUICE_LOCAL_CHILD"

func TestMain(m *testing.M) {
	switch mode := os.Getenv(childMode); mode {
	case "", "bound":
		os.Exit(m.Run())
	case "write":
		writeUntilKilled()
	case "fulldisk":
		if err := inFullDiskChild(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// killRounds is how often a process is killed: a third of all the times, unless SLUICE_TORTURE asks for all.
func killRounds() int {
	if os.Getenv("SLUICE_TORTURE") != "" {
		return 60
	}
	return 20
}

// TestAKilledWriterLeavesNothingTorn kills a process that stages, publishes, collects and deletes: in half of the rounds
// by itself right before a change of the disk, in the others from outside at any moment.
func TestAKilledWriterLeavesNothingTorn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	published := make(map[storage.Object]string) // What the children were told is durable.
	for round := range killRounds() {
		random := rand.New(rand.NewPCG(uint64(round), 7))
		dies := 1 + random.IntN(400)
		child := startWriter(t, dir, round, dies, round%2 == 0)
		doing := child.follow(t, published, random.IntN(2000))
		checkAfterKill(t, round, dir, published, doing)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}

type writer struct {
	command *exec.Cmd
	lines   *bufio.Scanner
	alone   bool // It kills itself.
}

func startWriter(t *testing.T, dir string, seed, dies int, alone bool) *writer {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), childMode+"=write", "DIR="+dir, "SEED="+strconv.Itoa(seed))
	if alone {
		command.Env = append(command.Env, "DIES="+strconv.Itoa(dies))
	}
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return &writer{command: command, lines: bufio.NewScanner(out), alone: alone}
}

// task is what a child was busy with: publish, collect or delete, and for which object.
type task struct {
	verb   string
	object storage.Object
	path   string
}

// follow notes what the child reports until it is dead, and returns what it was busy with.
func (w *writer) follow(t *testing.T, published map[storage.Object]string, killAfter int) (doing task) {
	t.Helper()
	seen := 0
	for w.lines.Scan() {
		verb, path, _ := strings.Cut(w.lines.Text(), " ")
		switch verb {
		case "publish", "collect", "delete":
			object, _, err := storage.ParsePath(path)
			if err != nil {
				t.Fatalf("The child said %q", w.lines.Text())
			}
			doing = task{verb: verb, object: object, path: path}
		case "done":
			switch doing.verb {
			case "publish":
				published[doing.object] = doing.path
			case "delete":
				delete(published, doing.object)
			}
			doing = task{}
		case "step":
		default:
			t.Fatalf("The child said %q", w.lines.Text())
		}
		if seen++; !w.alone && seen == killAfter {
			if err := w.command.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.command.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Fatalf("The child was not killed but ended with %v", err)
	}
	return doing
}

func checkAfterKill(t *testing.T, round int, dir string, published map[storage.Object]string, doing task) {
	t.Helper()
	// Every body is whole: its name tells its digest.
	for _, name := range blobs(t, dir) {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if want := digest.FromBytes(content).Encoded(); filepath.Base(name) != want {
			t.Errorf("round %d: %s is torn", round, name)
		}
	}
	var seen watch
	store, err := Open(dir, Options{OnDamage: seen.onDamage})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	// Nothing that was reported is lost: an object's record names what was published last or what was being published.
	for object, path := range published {
		record, err := store.Record(t.Context(), object)
		switch {
		case object == doing.object && doing.verb == "delete":
		case object == doing.object && err == nil && record.Current.Path == doing.path:
		case err != nil || record.Current.Path != path:
			t.Errorf("round %d: %s was published, the record says %q, %v", round, path, record.Current.Path, err)
		}
	}
	// The next writer converges: what the dead one began can be done, or be left, and a sweep takes the rest.
	switch {
	case doing.verb == "delete":
		if err := store.Delete(t.Context(), doing.object); err != nil {
			t.Errorf("round %d: Delete: %v", round, err)
		}
		delete(published, doing.object)
	case doing.verb == "publish" && round%3 > 0:
		published[doing.object] = publish(t, store, doing.object, fmt.Sprint("after round ", round)).Current.Path
	case doing.verb == "publish":
		if record, err := store.Record(t.Context(), doing.object); err == nil {
			published[doing.object] = record.Current.Path
		}
	}
	if _, err := store.SweepOrphans(t.Context(), func(storage.Object, string) bool { return true }, 0); err != nil {
		t.Errorf("round %d: SweepOrphans: %v", round, err)
	}
	wantTidy(t, store, dir)
	if seen.count() > 0 {
		t.Errorf("round %d: damage: %v", round, seen.told)
	}
}

// writeUntilKilled is the child. It reports each call before and after, and each change of the disk.
func writeUntilKilled() {
	seed, _ := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	dies, _ := strconv.Atoi(os.Getenv("DIES"))
	random := rand.New(rand.NewPCG(seed, 3))
	now := noon.Add(time.Duration(seed) * time.Hour)
	store, err := Open(os.Getenv("DIR"), Options{Now: func() time.Time { return now }})
	if err != nil {
		panic(err)
	}
	steps := 0
	store.disk.before = func(string, string) error {
		if steps++; steps == dies {
			if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
				return err
			}
			select {}
		}
		fmt.Println("step")
		return nil
	}
	for {
		object := storage.Object{Kind: "gitrepository", Namespace: "default", Name: fmt.Sprint("o", random.IntN(4))}
		now = now.Add(time.Duration(random.IntN(90)) * time.Second)
		if err := writeOnce(store, object, random); err != nil {
			panic(err)
		}
	}
}

func writeOnce(store *Store, object storage.Object, random *rand.Rand) error {
	ctx := context.Background()
	switch random.IntN(5) {
	case 0:
		fmt.Println("delete " + object.File("x"))
		if err := store.Delete(ctx, object); err != nil {
			return err
		}
	case 1:
		fmt.Println("collect " + object.File("x"))
		if _, err := store.Collect(ctx, object, ""); err != nil {
			return err
		}
	default:
		body := strings.Repeat(fmt.Sprint("body ", random.IntN(6)), 1+random.IntN(3)*20000)
		fmt.Println("publish " + pathFor(object, body))
		staged, err := store.Stage(ctx, 0, writing(body))
		if err != nil {
			return err
		}
		if _, err := store.Publish(ctx, object, staged, recordFor(object, body)); err != nil {
			return err
		}
	}
	fmt.Println("done")
	return nil
}
