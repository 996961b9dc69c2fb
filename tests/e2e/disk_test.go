package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
)

// published is the form of the names that artifacts of commits and of manifests are served under.
var published = regexp.MustCompile(
	`^(gitrepository/[^/]+/[^/]+/[0-9a-f]{40}|ocirepository/[^/]+/[^/]+/sha256:[0-9a-f]{64}|bucket/[^/]+/[^/]+/[0-9a-f]{64})(-[0-9a-f]{12})?\.tar\.gz$`)

// disk is what lies in a storage folder, as an outsider sees it.
type disk struct {
	files   map[string]digest.Digest // what a path that a record names is served with
	blobs   map[string]bool          // the bodies, and whether a record names each
	records map[string]digest.Digest // the digest under each path that a record names
	tmp     []string
}

// readDisk reads a storage folder that nobody writes to, and tells everything that is wrong with it: torn or foreign
// files, bodies that are not what they are called, records that name what is not there.
func readDisk(root string) (disk, []string) {
	d := disk{files: map[string]digest.Digest{}, blobs: map[string]bool{}, records: map[string]digest.Digest{}}
	var wrong []string
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		switch {
		case strings.HasPrefix(name, ".sluice/blobs/sha256/"):
			if path.Base(name) != hex.EncodeToString(sum[:]) {
				complain("the body %s has the digest %x", name, sum)
			}
			if _, err := untar(content); err != nil {
				complain("%s is torn: %v", name, err)
			}
			d.blobs[path.Base(name)] = false
		case strings.HasPrefix(name, ".sluice/records/"):
			if err := d.record(content); err != nil {
				complain("the record %s: %v", name, err)
			}
		case strings.HasPrefix(name, ".sluice/tmp/"):
			d.tmp = append(d.tmp, name)
		case name == ".sluice/lock":
		default:
			complain("%s is none of the storage's files", name)
		}
		return nil
	})
	if err != nil {
		complain("read the storage: %v", err)
	}
	for name, want := range d.records {
		if !published.MatchString(name) {
			complain("a record names %s", name)
		}
		if _, stored := d.blobs[want.Encoded()]; !stored {
			complain("a record gives %s the digest %s, which is not stored", name, want)
			continue
		}
		d.blobs[want.Encoded()] = true
		d.files[name] = want
	}
	return d, wrong
}

// storedArtifact is what a record says of an artifact.
type storedArtifact struct {
	Path   string        `json:"path"`
	Digest digest.Digest `json:"digest"`
}

// record reads a record as documented in storage: a version, a digest, and the record under it.
func (d *disk) record(text []byte) error {
	var file struct {
		Digest digest.Digest   `json:"digest"`
		Record json.RawMessage `json:"record"`
	}
	var record struct {
		Current    storedArtifact   `json:"current"`
		Superseded []storedArtifact `json:"superseded"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return err
	}
	if got := digest.FromBytes(file.Record); got != file.Digest {
		return fmt.Errorf("its digest is %s, not %s", got, file.Digest)
	}
	if err := json.Unmarshal(file.Record, &record); err != nil {
		return err
	}
	for _, artifact := range append(record.Superseded, record.Current) {
		d.records[artifact.Path] = artifact.Digest
	}
	return nil
}

// strays is everything that nothing refers to.
func (d *disk) strays() []string {
	strays := slices.Clone(d.tmp)
	for name, named := range d.blobs {
		if !named {
			strays = append(strays, "body "+name)
		}
	}
	slices.Sort(strays)
	return strays
}
