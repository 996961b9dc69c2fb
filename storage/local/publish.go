package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/retention"
)

// Publish implements storage.Writer. When it fails, the object's record and files are as they were; the body stays
// staged, for another try or for Discard.
func (s *Store) Publish(
	ctx context.Context, object storage.Object, staged storage.Staged, record storage.Record,
) (published storage.Record, err error) {
	defer during(&err, "publish %s for %s", staged.Digest, object)
	d := staged.Digest
	record.Current.Digest, record.Current.Size = d, staged.Size
	if err := errors.Join(object.CheckPath(record.Current.Path), d.Validate(), ctx.Err()); err != nil {
		return storage.Record{}, err
	}
	if err := s.beginWriting(); err != nil {
		return storage.Record{}, err
	}
	defer s.objects.lock(object)()
	previous, err := s.load(object)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return storage.Record{}, err
	}
	record, err = retention.Supersede(previous, record, s.options.Now())
	if err != nil {
		return storage.Record{}, err
	}
	if err := s.claim(object); err != nil {
		return storage.Record{}, err
	}
	if err := s.expose(record.Current); err != nil {
		return storage.Record{}, errors.Join(err, s.dropStrays(object))
	}
	if err := s.save(object, record); err != nil {
		return storage.Record{}, errors.Join(err, s.dropStrays(object))
	}
	s.staged.drop(d)
	// Where links do not work the path has a copy, and nobody needs the blob. Should it stay, a sweep finds it.
	_ = s.reap(d)
	return record, nil
}

// claim gives the object its folder of records; what lies in its other folder is the storage's from now on.
func (s *Store) claim(object storage.Object) error {
	s.tree.RLock()
	defer s.tree.RUnlock()
	return s.disk.mkdirAll(path.Dir(recordPath(object)))
}

// expose makes the body appear under the artifact's path, over anything else that lies there: the record says that
// the path may name these bytes, and what a record does not name was never served.
func (s *Store) expose(artifact storage.Artifact) error {
	defer s.digests.lock(artifact.Digest)()
	s.tree.RLock()
	defer s.tree.RUnlock()
	dir := path.Dir(artifact.Path)
	if err := s.disk.mkdirAll(dir); err != nil {
		return err
	}
	have, err := s.holds(artifact.Path, artifact)
	if err != nil {
		return err
	}
	if have {
		// It may be there since a crash that came before the folder was durable.
		return s.disk.syncDir(dir)
	}
	return s.linkBlob(artifact)
}

func (s *Store) linkBlob(artifact storage.Artifact) error {
	blob, err := s.openIntact(blobPath(artifact.Digest), artifact)
	if blob != nil {
		defer blob.Close()
	}
	if errors.Is(err, storage.ErrDamaged) {
		return errors.Join(err, s.disk.remove(blobPath(artifact.Digest)))
	}
	if err != nil {
		return fmt.Errorf("staged body: %w", err)
	}
	if info, err := s.disk.root.Lstat(artifact.Path); err == nil && info.IsDir() {
		// Renaming does not replace a folder.
		if err := s.disk.removeTree(artifact.Path); err != nil {
			return err
		}
	}
	tmp, done := s.disk.reserve()
	defer done()
	err = s.keepTrust(artifact.Digest, func() error {
		if err := s.disk.link(blobPath(artifact.Digest), tmp); err != nil {
			return err
		}
		return s.disk.place(tmp, artifact.Path)
	})
	if cannotLink(err) {
		return s.copyBlob(blob, artifact)
	}
	return err
}

// cannotLink tells whether the file system has no hard links, or no more for this file, or forbids this one.
func cannotLink(err error) bool {
	var failed *os.LinkError
	if !errors.As(err, &failed) || failed.Op != "linkat" {
		return false
	}
	return slices.ContainsFunc([]error{syscall.EPERM, syscall.ENOTSUP, syscall.ENOSYS, syscall.EMLINK, syscall.EXDEV},
		func(reason error) bool { return errors.Is(failed.Err, reason) })
}

func (s *Store) copyBlob(blob *os.File, artifact storage.Artifact) error {
	tmp, done, err := s.disk.writeAside(bodyMode, func(file *os.File) error {
		hash := artifact.Digest.Algorithm().Digester()
		if _, err := io.Copy(io.MultiWriter(file, hash.Hash()), blob); err != nil {
			return err
		}
		if hash.Digest() != artifact.Digest {
			return storage.ErrDamaged
		}
		return nil
	})
	if err != nil {
		return err
	}
	defer done()
	if err := s.disk.place(tmp, artifact.Path); err != nil {
		return err
	}
	return s.trust(artifact.Path, artifact.Digest)
}

// unlink removes a published file. The digest's guard keeps the blob's good name.
func (s *Store) unlink(artifact storage.Artifact) error {
	defer s.digests.lock(artifact.Digest)()
	return s.keepTrust(artifact.Digest, func() error {
		err := s.disk.remove(artifact.Path)
		if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist) {
			return s.disk.removeTree(artifact.Path)
		}
		return err
	})
}
