// Package local stores artifacts as files under one folder: bodies by their digest, and records that say which body
// each published path means. It does not know who serves the files or what they hold.
//
// The folder looks like this; everything in it is hidden:
//
//	.sluice/blobs/<algorithm>/<hex>                     bodies by digest
//	.sluice/records/<kind>/<namespace>/<name>/record.json  what is known about the object
//	.sluice/tmp/                                        files being written
//	.sluice/lock                                        locked while a process writes
package local

import (
	_ "crypto/sha256" // The digest algorithms have to be linked.
	_ "crypto/sha512"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/retention"
)

var _ storage.Store = (*Store)(nil)

// Options tune a store. The zero value works.
type Options struct {
	// Algorithm names new artifacts: sha256 (the default), sha384 or sha512. Stored ones keep theirs.
	Algorithm digest.Algorithm
	// Retention says how long Collect keeps superseded artifacts.
	Retention retention.Policy
	// Now is the clock; nil means the system's.
	Now func() time.Time
	// OnDamage is told, once for each damaged file, that an artifact of the object must be made again.
	// It is called without locks and may use the store. Nil means nobody is told.
	OnDamage func(object storage.Object, err error)
}

// Store keeps artifacts below one folder. Any number of processes may read it. The first call that writes locks the
// folder for its process and keeps it so until Close; other processes' writing calls then return storage.ErrInUse.
// All methods may be called by many goroutines.
type Store struct {
	options Options
	disk    *disk
	lock    writerLock

	objects  keyed[storage.Object] // held while an object's record changes
	digests  keyed[digest.Digest]  // held while a blob appears, is claimed or goes away
	hashing  keyed[digest.Digest]  // held while a body is hashed, so that many readers cause one pass
	tree     sync.RWMutex          // shared while files enter folders, exclusive while empty folders go
	staged   stagedBodies
	names    names
	meanings *meanings
	opened   *lru.Cache[digest.Digest, *shared] // bodies
	verdicts verdicts
	saves    atomic.Int64 // of records
}

// Open opens the store in an existing folder. It writes nothing.
func Open(dir string, options Options) (*Store, error) {
	switch options.Algorithm {
	case "":
		options.Algorithm = digest.SHA256
	case digest.SHA256, digest.SHA384, digest.SHA512:
	default:
		return nil, fmt.Errorf("digest algorithm %q is not one of sha256, sha384, sha512", options.Algorithm)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.OnDamage == nil {
		options.OnDamage = func(storage.Object, error) {}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open storage: %w", err)
	}
	disk, err := newDisk(root)
	if err != nil {
		return nil, fmt.Errorf("open storage: %w", errors.Join(err, root.Close()))
	}
	return &Store{options: options, disk: disk, verdicts: newVerdicts(), meanings: newMeanings(), opened: newOpened()}, nil
}

// Algorithm implements storage.Writer.
func (s *Store) Algorithm() digest.Algorithm { return s.options.Algorithm }

// Close lets other processes write. Bodies that are open stay readable; the store is not usable any more.
func (s *Store) Close() error {
	s.opened.Purge()
	return errors.Join(s.lock.release(), s.disk.close())
}
