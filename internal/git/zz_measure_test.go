package git_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
	"os/exec"

	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

func TestMeasure(t *testing.T) {
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	hash, err := repository.Bulk("main", 5000, 80<<20)
	if err != nil {
		t.Fatal(err)
	}
	server := f.HTTP(upstream.HTTPOptions{})
	remote := git.Remote{URL: server.URL("app")}
	client := newClient(t)
	for range 3 {
		server.Reset()
		s := time.Now()
		c := fetch(t, client, remote, git.Want{Hash: hash})
		fetched := time.Since(s)
		files(t, c.Tree())
		fmt.Println("ours: fetch", fetched, "read all", time.Since(s)-fetched, "bytes", c.BytesReceived, "out", server.BytesOut())
		server.Reset()
		s = time.Now()
		dir := filepath.Join(t.TempDir(), "c")
		cmd := exec.Command("git", "clone", "-q", "--bare", "--depth", "1", remote.URL, dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatal(string(out))
		}
		fmt.Println("git clone --bare --depth 1:", time.Since(s), cmd.ProcessState.SystemTime()+cmd.ProcessState.UserTime(), "out", server.BytesOut())
		s = time.Now()
		out := exec.Command("sh", "-c", "git -C "+dir+" archive HEAD | cat >/dev/null")
		out.Run()
		fmt.Println("git archive", time.Since(s))
	}
	for range 3 {
		server.Reset()
		s := time.Now()
		client.ListRefs(t.Context(), remote, "refs/heads/main")
		fmt.Println("ls-refs", time.Since(s), "sent", server.BytesIn(), "received (with headers)", server.BytesOut())
	}
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	fmt.Println("max rss MiB", u.Maxrss/1024, os.Getpid())
}
