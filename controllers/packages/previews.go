package packages

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/kpt"
)

// maxPreviewMemory bounds what is kept of the previews of all sets: of more, the names and conflicts are left out.
const maxPreviewMemory = 64 << 20

// worked is what came of making a package for a preview.
type worked struct {
	// key names what it came of.
	key           string
	files         *packagesv1.FileChanges
	objects       *packagesv1.ObjectChanges
	conflicts     []packagesv1.Conflict
	conflictCount int32
	// content names what was made and what is told of it, also where that is cut.
	content string
	// adopts says that nothing has to be made: what is there is as it should be.
	adopts bool
	err    error
	// retry is when a failure is tried again that may pass.
	retry time.Time
	size  int
	isCut bool
}

func newWorked(o *outcome) *worked {
	w := &worked{key: o.key, conflicts: o.made.listed.conflicts, conflictCount: capped(o.made.listed.count()), adopts: o.made.adopted != nil}
	if w.err = o.result.Err; w.err != nil {
		w.err = explain(w.err)
	} else {
		w.files, w.objects = o.made.differs()
	}
	text, _ := json.Marshal([]any{w.files, w.objects, w.conflicts, o.made.content}) // They are texts and numbers.
	sum := sha256.Sum256(text)
	w.content, w.size = hex.EncodeToString(sum[:]), len(text)
	return w
}

// cut leaves out all but the counts.
func (w *worked) cut() *worked {
	if w.isCut = true; w.files != nil {
		w.files, w.objects = countsOf(w.files, w.objects)
	}
	w.conflicts, w.size = nil, 0
	return w
}

// countsOf are the changes without their names.
func countsOf(files *packagesv1.FileChanges, objects *packagesv1.ObjectChanges) (*packagesv1.FileChanges, *packagesv1.ObjectChanges) {
	if files == nil || objects == nil {
		return nil, nil
	}
	f, o := *files, *objects
	f.Names, o.Names = nil, nil
	return &f, &o
}

// contentDigest names what is in a package.
func contentDigest(p kpt.Package) string {
	sum := sha256.New()
	for _, path := range p.Paths() {
		fmt.Fprintf(sum, "%q %o %d\n", path, p[path].Mode, len(p[path].Content))
		sum.Write(p[path].Content)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// previews remember what was worked out for the previews of sets, by the names of their variants. What is lost is worked out again.
type previews struct {
	mu   sync.Mutex
	sets map[types.NamespacedName]map[string]*worked
	size int
}

func newPreviews() *previews { return &previews{sets: map[types.NamespacedName]map[string]*worked{}} }

func (p *previews) of(set types.NamespacedName) map[string]*worked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sets[set]
}

// keep replaces what is remembered of a set, and cuts what there is no room for.
func (p *previews) keep(set types.NamespacedName, all map[string]*worked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.sets[set] {
		p.size -= w.size
	}
	if delete(p.sets, set); len(all) == 0 {
		return
	}
	p.sets[set] = all
	for _, w := range all {
		if p.size+w.size > maxPreviewMemory {
			w.cut()
		}
		p.size += w.size
	}
}
