// Package pkgrepo keeps config packages in a Git repository: which ones there are, in which revisions and open changes, and how a
// round of changes becomes commits and pushes. Git is the truth; what is in memory can be lost at any time.
// It does not know what is in a package beyond its Kptfile, who wants a change and who may, or that Kubernetes exists.
//
// The layout is that of Porch. An open change is a branch, drafts/<path>/<workspace> or proposed/<path>/<workspace>. A published
// revision is a commit on the repository's branch that replaces the folder <path>, and the tag <path>/vN. The branch
// deletionProposed/<path>/vN marks a revision. <path> is the package's, behind the repository's directory.
//
// The first commit of a draft stands on the branch's head, and later ones on the draft: none is ever rewritten. As long as the
// branch does not exist, the first commit of a draft has no parent and nothing in it but the package; the first publication
// makes the branch, with a commit without parents as well. Nobody has to make a commit to begin with, and no draft is left
// on a history that the branch does not have.
package pkgrepo

import (
	"cmp"
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"k8s.io/utils/clock"

	"sluice.dev/sluice/internal/git"
)

// Detailed is of how many published revisions of a package the Kptfile is read. Of all others the number, the tag and the
// commit are enough.
const Detailed = 3

// Options tune a Depot. Zero values mean the defaults.
type Options struct {
	// Clock tells when commits are made. Default the machine's.
	Clock clock.PassiveClock
	// MaxRefs bounds the branches and tags of a repository that are known. Default 100,000.
	MaxRefs int
	// MaxPackages bounds the packages of a repository that are known. Default 10,000.
	MaxPackages int
	// MaxKptfileBytes bounds one Kptfile. Default 256 KiB.
	MaxKptfileBytes int64
	// MaxFactsBytes bounds the Kptfiles whose facts a repository keeps, all together. Default 32 MiB.
	MaxFactsBytes int64
	// MaxSnapshotBytes bounds what the snapshots of all repositories take. One tenant has at most half of what others leave.
	// Default 256 MiB.
	MaxSnapshotBytes int64
	// MaxWalk bounds how many commits of a history are looked at for one question. Default 1,000.
	MaxWalk int
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	o.MaxRefs = cmp.Or(o.MaxRefs, 100_000)
	o.MaxPackages = cmp.Or(o.MaxPackages, 10_000)
	o.MaxKptfileBytes = cmp.Or(o.MaxKptfileBytes, 256<<10)
	o.MaxFactsBytes = cmp.Or(o.MaxFactsBytes, 32<<20)
	o.MaxSnapshotBytes = cmp.Or(o.MaxSnapshotBytes, 256<<20)
	o.MaxWalk = cmp.Or(o.MaxWalk, 1_000)
	return o
}

// Depot has what repositories share. It is safe for concurrent use.
type Depot struct {
	client   *git.Client
	options  Options
	memory   *recollection
	holdings *holdings
	seed     maphash.Seed
}

// New returns a Depot that has nothing to do with any repository yet.
func New(client *git.Client, options Options) *Depot {
	options = options.withDefaults()
	return &Depot{client: client, options: options, memory: newMemory(maxMemoryBytes), holdings: newHoldings(options.MaxSnapshotBytes), seed: maphash.MakeSeed()}
}

// Person is who made a commit.
type Person struct{ Name, Email string }

// Settings say where a repository is and how commits are made in it.
type Settings struct {
	// Tenant is whose the repository is: what all of one take together is bounded.
	Tenant string
	// Fetch and Push are the same repository, as those see it who read and who write. Nothing is written without a Push.URL.
	Fetch, Push git.Remote
	// Branch has the published packages. Default main.
	Branch string
	// Directory is the folder that they are in; empty for all of the branch.
	Directory string
	// Author and Committer of commits. The committer is the author if empty.
	Author, Committer Person
	// Signer signs commits; nil leaves them unsigned.
	Signer git.Signer
	// Index has commits on the branch carry a file that lists the packages and their tags: .sluice/index in the directory.
	Index bool
	// Wanted are the packages of variants, with the variants as <namespace>/<name>. They come before others where there are more than
	// MaxPackages, or MaxRefs. Nobody may change it.
	Wanted map[string][]string
}

// Repository is a repository of packages, and what is known of it. It is safe for concurrent use: Sync and Apply wait for each
// other, all else goes on with the last snapshot.
type Repository struct {
	depot *Depot
	// busy holds one who syncs or applies.
	busy chan struct{}
	last atomic.Pointer[Snapshot]

	mu       sync.Mutex
	settings Settings
	// refused are leftovers that the server did not let go, by their refs.
	refused map[string]refusal
}

// Repository returns one of which nothing is known yet. Where its settings cannot be used, all it does is ErrName.
func (d *Depot) Repository(settings Settings) *Repository {
	return &Repository{depot: d, busy: make(chan struct{}, 1), settings: settings}
}

// Use takes on new settings, and tells whether it could: what is known is of one branch and directory of one URL.
func (r *Repository) Use(settings Settings) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	same := settings.Fetch.URL == r.settings.Fetch.URL && settings.Branch == r.settings.Branch && settings.Directory == r.settings.Directory
	if same {
		r.settings = settings
	}
	return same
}

// Snapshot is the last one; nil before the first. It is the same one as long as nothing has moved.
func (r *Repository) Snapshot() *Snapshot { return r.last.Load() }

// work is one use of a repository: its settings do not change meanwhile.
type work struct {
	*Repository
	layout

	settings Settings
	bounds   bounds
}

func (r *Repository) work() (work, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, err := newLayout(r.settings.Branch, r.settings.Directory)
	o := r.depot.options
	return work{Repository: r, layout: l, settings: r.settings, bounds: bounds{o.MaxRefs, o.MaxPackages, o.MaxFactsBytes, false}}, err
}

// alone begins work that nobody else does at the same time. The caller ends it.
func (r *Repository) alone(ctx context.Context) (w work, end func(), err error) {
	if w, err = r.work(); err != nil {
		return w, nil, err
	}
	select {
	case r.busy <- struct{}{}:
		return w, func() { <-r.busy }, nil
	case <-ctx.Done():
		return w, nil, context.Cause(ctx)
	}
}
