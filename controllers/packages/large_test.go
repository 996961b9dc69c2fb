package packages_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/tests/upstream"
)

// TestALargePackageGoesAllTheWay: five megabytes that cannot be compressed are drafted, published and updated. An update holds
// three packages at once. With SLUICE_TORTURE there are twenty, and four times the memory.
func TestALargePackageGoesAllTheWay(t *testing.T) {
	t.Parallel()
	// For twenty it is what --memory-budget is in a container of 2 GiB where modules are installed as well, less the quarter for what
	// these render.
	count, work := 5, int64(518<<20/4)
	if os.Getenv("SLUICE_TORTURE") != "" {
		count, work = 20, 518<<20
	}
	p := newPlane(t, func(p *plane) { p.memory, p.files = memory.New(work, "--memory"), memory.NewFiles(4<<30, "--files") })
	blueprints, cluster := p.repository("blueprints"), p.repository("cluster")
	cluster.Commit("main", "begin", upstream.Text(readme))
	files := map[string]string{"app/Kptfile": kptfile, "app/deployment.yaml": deployment}
	noise := rand.NewChaCha8([32]byte{1})
	for i := range count {
		text := make([]byte, 3<<18) // It is a third longer as text.
		_, _ = noise.Read(text)     // It never fails.
		files[fmt.Sprintf("app/assets/%d.txt", i)] = base64.StdEncoding.EncodeToString(text)
	}
	blueprints.Tag("app/v1", blueprints.Commit("main", "large", upstream.Text(files)), false)
	v := p.variant(always)
	p.published(v, "v1")
	got := cluster.Tree("main")
	for name, want := range files {
		if name != "app/Kptfile" && got[name].Content != want {
			t.Errorf("%s is not what it should be", name)
		}
	}
	blueprints.Tag("app/v2", blueprints.Commit("main", "one more line", upstream.Text(map[string]string{"app/notes.txt": "words\n"})), false)
	p.published(v, "v2")
	if got := cluster.Tree("main")["app/notes.txt"].Content; got != "words\n" {
		t.Errorf("the update has %q", got)
	}
}
