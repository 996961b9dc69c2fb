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
	"syscall"

	"github.com/opencontainers/go-digest"
)

// published is the form of the names that artifacts of commits and of manifests are served under.
var published = regexp.MustCompile(
	`^(gitrepository/[^/]+/[^/]+/[0-9a-f]{40}|ocirepository/[^/]+/[^/]+/sha256:[0-9a-f]{64})(-[0-9a-f]{12})?\.tar\.gz$`)

// disk is what lies in a storage folder, as an outsider sees it.
type disk struct {
	files   map[string]digest.Digest // everything outside .sluice
	blobs   map[string]uint64        // how many names each body has
	records map[string]string        // the digest under each path that a record names
	tmp     []string
}

// readDisk reads a storage folder that nobody writes to, and tells everything that is wrong with it: torn or foreign
// files in the part that is served, bodies that are not what they are called, records that name what is not there.
func readDisk(root string) (disk, []string) {
	d := disk{files: map[string]digest.Digest{}, blobs: map[string]uint64{}, records: map[string]string{}}
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
			d.blobs[path.Base(name)] = links(entry)
		case strings.HasPrefix(name, ".sluice/records/"):
			if err := d.record(content); err != nil {
				complain("the record %s: %v", name, err)
			}
		case strings.HasPrefix(name, ".sluice/tmp/"):
			d.tmp = append(d.tmp, name)
		case name == ".sluice/lock":
		case !published.MatchString(name):
			complain("%s is in the part that is served", name)
		default:
			d.files[name] = digest.NewDigestFromBytes(digest.SHA256, sum[:])
			if _, err := untar(content); err != nil {
				complain("%s is torn: %v", name, err)
			}
		}
		return nil
	})
	if err != nil {
		complain("read the storage: %v", err)
	}
	for name, want := range d.records {
		if got := d.files[name]; got.String() != want {
			complain("a record gives %s the digest %s, its bytes have %q", name, want, got)
		}
	}
	return d, wrong
}

// record reads a record as documented in storage: a version, a digest, and the record under it.
func (d *disk) record(text []byte) error {
	var file struct {
		Digest digest.Digest   `json:"digest"`
		Record json.RawMessage `json:"record"`
	}
	var record struct {
		Current    struct{ Path, Digest string }   `json:"current"`
		Superseded []struct{ Path, Digest string } `json:"superseded"`
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
	for name := range d.files {
		if d.records[name] == "" {
			strays = append(strays, name)
		}
	}
	for name, links := range d.blobs {
		if links < 2 {
			strays = append(strays, "body "+name)
		}
	}
	slices.Sort(strays)
	return strays
}

func links(entry fs.DirEntry) uint64 {
	info, err := entry.Info()
	if err != nil {
		return 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return uint64(stat.Nlink) //nolint:unconvert // Its type differs between systems.
}
