package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"

	"sluice.dev/sluice/storage"
)

const (
	recordVersion = 1
	// maxRecord bounds what is read of a record file, in bytes.
	maxRecord = 4 << 20
)

// recordFile is a record as it is written. The record decides whether an artifact is up to date, so it carries
// a digest of its own: a flipped bit in it must not pass for a fact.
type recordFile struct {
	Version int             `json:"version"`
	Digest  digest.Digest   `json:"digest"`
	Record  json.RawMessage `json:"record"`
}

// Record implements storage.Writer. It reads the record and the state of the body's file; the body itself is read
// only if the file is not known from an earlier look.
func (s *Store) Record(ctx context.Context, object storage.Object) (storage.Record, error) {
	if err := ctx.Err(); err != nil {
		return storage.Record{}, err
	}
	record, damage, err := s.checkedRecord(object)
	if damage != nil {
		s.options.OnDamage(object, damage)
	}
	if err != nil {
		return storage.Record{}, fmt.Errorf("record of %s: %w", object, err)
	}
	return record, nil
}

func (s *Store) checkedRecord(object storage.Object) (record storage.Record, damage, err error) {
	defer s.objects.lock(object)()
	record, err = s.load(object)
	if err != nil {
		return storage.Record{}, nil, err
	}
	for _, artifact := range append([]storage.Artifact{record.Current}, companions([]storage.Artifact{record.Current})...) {
		if damage, err := s.checkBody(artifact); err != nil {
			return storage.Record{}, damage, err
		}
	}
	return record, nil, nil
}

// checkBody tells whether the artifact's body is there. One that was found damaged just now is removed.
func (s *Store) checkBody(artifact storage.Artifact) (damage, err error) {
	file, err := s.openIntact(artifact)
	if file != nil {
		defer file.Close()
	}
	if errors.Is(err, storage.ErrDamaged) {
		return storage.PathError(artifact.Path, err), errors.Join(storage.ErrNotFound, s.condemn(file, artifact))
	}
	return nil, err
}

// read is load of what is not known.
func (s *Store) read(object storage.Object) (storage.Record, error) {
	if err := object.Validate(); err != nil {
		return storage.Record{}, fmt.Errorf("%w: %w", storage.ErrNotFound, err)
	}
	file, id, err := s.disk.open(recordPath(object))
	if errors.Is(err, fs.ErrNotExist) {
		return storage.Record{}, storage.ErrNotFound
	}
	if err != nil {
		return storage.Record{}, noRecord(err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxRecord))
	if err != nil {
		return storage.Record{}, noRecord(err)
	}
	record, err := decodeRecord(object, text)
	if err != nil {
		return storage.Record{}, fmt.Errorf("%w: unreadable: %w", storage.ErrNotFound, err)
	}
	s.remember(object, id, record, len(text))
	return record, nil
}

// noRecord makes a file that the disk does not give back count as none.
func noRecord(err error) error {
	if unreadable(err) {
		return fmt.Errorf("%w: unreadable: %w", storage.ErrNotFound, err)
	}
	return err
}

// save replaces the object's record, and learns what it names. The object's lock is held, and who brings a new body has
// claimed it.
func (s *Store) save(object storage.Object, record storage.Record) error {
	text, err := encodeRecord(record)
	if err != nil {
		return err
	}
	if len(text) > maxRecord {
		return fmt.Errorf("record of %d bytes exceeds %d bytes", len(text), maxRecord)
	}
	tmp, done, err := s.disk.writeAside(bodyMode, func(file *os.File) error {
		_, err := file.Write(text)
		return err
	})
	if err != nil {
		return err
	}
	defer done()
	// Whoever remembers the earlier file tells this one by its time, which a file system gives to all that it writes within
	// some milliseconds, or for as long as the clock stands still: the number may be that of a file before.
	now := s.options.Now().Add(time.Duration(s.saves.Add(1)))
	_ = s.disk.root.Chtimes(tmp, now, now) // Where that cannot be set, the file system's own has to do.
	s.tree.RLock()
	defer s.tree.RUnlock()
	if err := s.disk.mkdirAll(path.Dir(recordPath(object))); err != nil {
		return err
	}
	before := s.names.set(object, digests(record))
	if err := s.disk.place(tmp, recordPath(object)); err != nil {
		// It may have its name already. Until that is known, it names what either says.
		s.names.set(object, slices.Concat(before, digests(record)))
		return errors.Join(err, s.count(object))
	}
	s.meanings.remove(recordPath(object))
	return nil
}

func encodeRecord(record storage.Record) ([]byte, error) {
	text, err := json.Marshal(record)
	if err != nil {
		return nil, err
	}
	file := recordFile{Version: recordVersion, Digest: digest.FromBytes(text), Record: text}
	return json.Marshal(file)
}

// decodeRecord trusts nothing it reads: paths and digests in the record become file names.
func decodeRecord(object storage.Object, text []byte) (storage.Record, error) {
	var file recordFile
	if err := json.Unmarshal(text, &file); err != nil {
		return storage.Record{}, err
	}
	if file.Version != recordVersion {
		return storage.Record{}, fmt.Errorf("version %d is not %d", file.Version, recordVersion)
	}
	if got := digest.FromBytes(file.Record); got != file.Digest {
		return storage.Record{}, fmt.Errorf("its digest is %s, not %s", got, file.Digest)
	}
	var record storage.Record
	if err := json.Unmarshal(file.Record, &record); err != nil {
		return storage.Record{}, err
	}
	for _, artifact := range artifacts(record) {
		if err := errors.Join(object.CheckPath(artifact.Path), artifact.Digest.Validate()); err != nil {
			return storage.Record{}, err
		}
	}
	return record, nil
}

// artifacts lists what the record names, the current artifact first, and companions last. No record names nothing.
func artifacts(record storage.Record) []storage.Artifact {
	if record.Current.Path == "" {
		return nil
	}
	all := []storage.Artifact{record.Current}
	for _, old := range record.Superseded {
		all = append(all, old.Artifact)
	}
	return append(all, companions(all)...)
}
