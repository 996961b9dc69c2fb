package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream"
	"sluice.dev/sluice/tests/upstream/registry"
)

// container is what the program may take in TestHostileInputsFitIntoASmallContainer.
const container = 256 << 20

// TestHostileInputsFitIntoASmallContainer: inputs that are each within their bounds come all at once, beside good ones, to a
// program in a container of 256 MiB without swap. No two objects have an upstream in common, so that nobody does another's
// work. Where no control group can be made, the peak is measured. The program is built without the race detector, which takes
// many times the memory. With SLUICE_TORTURE there are 63 hostile ones and 100 good ones.
func TestHostileInputsFitIntoASmallContainer(t *testing.T) {
	t.Parallel()
	plain, err := testenv.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &hostility{scene: newScene(t), rounds: 1, goods: 10, files: 40_000, objects: 100_000}
	if os.Getenv("SLUICE_TORTURE") != "" {
		h.rounds, h.goods, h.files, h.objects = 7, 100, 99_000, 1_000_000
	}
	h.prepare = func(cmd *exec.Cmd) {
		cmd.Path, cmd.Args[0] = plain, plain
		cmd.Env = append(cmd.Env, "GOMEMLIMIT=192MiB")
	}
	h.open()
	revisions := map[string]string{}
	for i := range h.goods {
		name := fmt.Sprintf("good-%d", i)
		revisions[name] = mainAt(h.upstream.Repository(name).Commit("main", name, upstream.Text(map[string]string{"app.yaml": name})))
	}
	h.start()
	contained := contain(t, h.manager.Pid())

	// Artifacts that others include come first.
	for i := range h.rounds {
		h.create(h.name("wide", i), h.git.URL(h.name("wide", i)))
	}
	for i := range h.rounds {
		h.ended(h.name("wide", i), meta.SucceededReason, "stored artifact")
	}
	for i := range h.rounds {
		h.attack(i)
	}
	for name := range revisions {
		h.create(name, h.git.URL(name))
	}
	for name, revision := range revisions {
		h.ready(name, revision)
	}
	for i := range h.rounds {
		h.survived(i)
	}
	select {
	case <-h.manager.Done():
		t.Fatal("the program was killed")
	default:
	}
	if peak := peakMemory(t, h.manager.Pid()); peak > container {
		t.Errorf("the program took %d MiB, in a control group: %t", peak>>20, contained)
	} else {
		t.Logf("the program took %d MiB at most, in a control group: %t", peak>>20, contained)
	}
}

// hostility is a scene with upstreams that are each as large as may be.
type hostility struct {
	*scene
	rounds, goods, files, objects int

	git      *upstream.GitHTTP
	registry *registry.Fixture
}

// name is what the object of that kind and its upstream are called in the round.
func (h *hostility) name(kind string, round int) string { return fmt.Sprintf("%s-%d", kind, round) }

// open makes the upstreams of all rounds: very many files, and objects, rules in a very deep folder, a long message, large
// deltas, layers of many files, long manifests and lists of tags. Repositories of a kind differ by a commit.
func (h *hostility) open() {
	deep := strings.Repeat("d/", 250)
	var rules strings.Builder
	for i := range 9_900 {
		fmt.Fprintf(&rules, "%d/%d\n", i, i)
	}
	large := strings.Repeat("all the same but for a number\n", 30<<20/30)
	for kind, contents := range map[string]map[string]string{
		"wide": numbered(h.files), "many": numbered(h.objects), "deep": {deep + ".sourceignore": rules.String(), deep + "file": ""},
		"delta": {"one": large + "1", "two": large + "2", "three": large + "3"},
	} {
		first := h.upstream.Repository(kind)
		first.Commit("main", kind, upstream.Text(contents))
		if kind == "delta" {
			first.Raw("repack", "-a", "-d", "-q", "--window=10")
		}
		h.fork(first)
	}
	for i := range h.rounds {
		name := h.name("message", i)
		message := strings.Repeat("a very long message\n", 15<<20/20) + name
		h.upstream.Repository(name).Commit("main", message, upstream.Text(map[string]string{"file": ""}))
		h.upstream.Repository(h.name("includes", i)).Commit("main", name, upstream.Text(map[string]string{"file": name}))
	}
	h.git = h.upstream.HTTP(upstream.HTTPOptions{})
	h.registry = registry.ForTest(h.t, registry.Options{})
	for i := range h.rounds {
		h.push(i)
	}
	var tags strings.Builder
	for i := range 99_999 {
		fmt.Fprintf(&tags, `,"1.0.%d-%s"`, i, strings.Repeat("x", 90))
	}
	h.registry.Always(registry.Answer(http.StatusOK, "application/json", `{"name":"tags","tags":["0.0.1"`+tags.String()+`]}`).On(registry.Tags))
}

// fork makes a repository for each round. They have their objects in common, and no commit.
func (h *hostility) fork(first *upstream.Edited) {
	tip := first.Raw("rev-parse", "main")
	for i := range h.rounds {
		name := h.name(first.Name(), i)
		fork := h.upstream.Repository(name)
		if err := os.WriteFile(filepath.Join(fork.Dir(), "objects", "info", "alternates"), []byte(filepath.Join(first.Dir(), "objects")+"\n"), 0o644); err != nil {
			h.t.Fatal(err)
		}
		fork.SetRef("refs/heads/main", tip)
		fork.Commit("main", name, upstream.Text(map[string]string{"own": name}))
	}
}

// push makes the round's repositories in the registry.
func (h *hostility) push(round int) {
	entries := []registry.Entry{registry.File("own", fmt.Sprint(round))}
	for name, text := range numbered(h.files) {
		entries = append(entries, registry.File(name, text))
	}
	layer, err := registry.TarGzip(entries...)
	if err != nil {
		h.t.Fatal(err)
	}
	h.registry.Repository(h.name("layer", round)).PushORAS("latest", registry.Layer{MediaType: ocispec.MediaTypeImageLayer, Content: layer})
	annotations := map[string]string{"round": fmt.Sprint(round)}
	for i := range 900 {
		annotations[strconv.Itoa(i)] = strings.Repeat("x", 4000)
	}
	h.registry.Repository(h.name("manifest", round)).PushFlux("latest", module(round), annotations)
}

// attack makes the round's objects.
func (h *hostility) attack(round int) {
	oci := ociScene{h.scene}
	for _, kind := range []string{"many", "deep", "message", "delta"} {
		h.create(h.name(kind, round), h.git.URL(h.name(kind, round)))
	}
	var includes []change
	for place := range 36 {
		includes = append(includes, include(h.name("wide", round), "", fmt.Sprintf("in/%d", place)))
	}
	h.create(h.name("includes", round), h.git.URL(h.name("includes", round)), includes...)
	for _, kind := range []string{"layer", "manifest"} {
		oci.create(h.name(kind, round), h.registry.URL(h.name(kind, round)))
	}
	oci.create(h.name("tags", round), h.registry.URL(h.name("tags", round)), ociSemver(">=1.0.0-0"))
}

// survived waits until each of the round's objects is what it should become.
func (h *hostility) survived(round int) {
	oci := ociScene{h.scene}
	for kind, want := range map[string]outcome{
		"deep": {meta.SucceededReason, ""}, "message": {meta.SucceededReason, ""},
		"many":     {sourcev1.GitOperationFailedReason, ""}, // Whichever bound it comes upon first.
		"delta":    {sourcev1.GitOperationFailedReason, "--memory-budget"},
		"includes": {sourcev1.ArchiveOperationFailedReason, "more than 100000 files and folders"},
	} {
		h.ended(h.name(kind, round), want.reason, want.text)
	}
	for kind, want := range map[string]outcome{
		"layer":    {meta.SucceededReason, ""},
		"manifest": {sourcev1.OCIPullFailedReason, "904 annotations"}, // It has been read by then.
		"tags":     {sourcev1.OCIPullFailedReason, "1.0.99998"},       // Nothing is there under the tag.
	} {
		oci.ended(h.name(kind, round), want.reason, want.text)
	}
}

// outcome is what Ready says in the end.
type outcome struct{ reason, text string }

// numbered are so many small files, a thousand in a folder.
func numbered(count int) map[string]string {
	files := map[string]string{}
	for i := range count {
		files[fmt.Sprintf("%d/%d", i/1000, i)] = strconv.Itoa(i)
	}
	return files
}

// ended waits until Ready has the reason, and says the text.
func (s *scene) ended(name, reason, text string) {
	s.t.Helper()
	s.until(name, fmt.Sprintf("ends with %s, %q", reason, text), func(obj *sourcev1.GitRepository) bool { return hasEnded(obj, reason, text) })
}

// ended is the scene's.
func (s ociScene) ended(name, reason, text string) {
	s.t.Helper()
	s.until(name, fmt.Sprintf("ends with %s, %q", reason, text), func(obj *sourcev1.OCIRepository) bool { return hasEnded(obj, reason, text) })
}

func hasEnded(obj conditions.Getter, reason, text string) bool {
	ready := conditions.Get(obj, meta.ReadyCondition)
	return ready != nil && ready.Status != metav1.ConditionUnknown && ready.Reason == reason && strings.Contains(ready.Message, text)
}

// contain puts a process into a control group with so much memory and no swap; see the kernel's documentation of cgroup v1,
// where the second limit is of both together, and v2. It says whether that can be done here.
func contain(t *testing.T, pid int) bool {
	t.Helper()
	for root, files := range map[string]struct {
		memory, swap string
		noSwap       int
	}{
		"/sys/fs/cgroup/memory": {"memory.limit_in_bytes", "memory.memsw.limit_in_bytes", container},
		"/sys/fs/cgroup":        {"memory.max", "memory.swap.max", 0},
	} {
		group := filepath.Join(root, fmt.Sprintf("sluice-test-%d", pid))
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(group) }) // It is empty once the program has ended.
		err := tell(filepath.Join(group, files.memory), container)
		// A kernel that accounts for no swap has no file for it.
		if swap := tell(filepath.Join(group, files.swap), files.noSwap); !errors.Is(swap, fs.ErrNotExist) {
			err = errors.Join(err, swap)
		}
		if err == nil && tell(filepath.Join(group, "cgroup.procs"), pid) == nil {
			return true
		}
	}
	return false
}

// tell writes a number into a file of the kernel's, which is there.
func tell(name string, number int) error {
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(file, number)
	return errors.Join(err, file.Close())
}

// peakMemory is the most that a process had in memory; see proc_pid_status(5).
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	var peak int64
	if _, err := fmt.Sscan(after, &peak); err != nil {
		t.Fatal(err)
	}
	return peak << 10
}
