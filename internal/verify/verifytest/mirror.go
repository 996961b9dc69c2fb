package verifytest

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/theupdateframework/go-tuf/v2/metadata"
)

// Mirror is a TUF repository of trust roots on this host.
type Mirror struct {
	// URL is where it is.
	URL string
	// InitialRoot is the root.json that its clients start from.
	InitialRoot []byte

	keys map[string]ed25519.PrivateKey

	lock     sync.Mutex
	files    map[string][]byte
	requests int
	broken   bool
}

// NewMirror publishes a trusted root in a repository whose root of trust expires at the given time.
func NewMirror(t testing.TB, trustedRoot []byte, expires time.Time) *Mirror {
	t.Helper()
	m := &Mirror{keys: map[string]ed25519.PrivateKey{}, files: map[string][]byte{}}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	m.URL = server.URL
	stated := metadata.Root(expires)
	stated.Signed.ConsistentSnapshot = true
	for _, role := range []string{metadata.ROOT, metadata.TARGETS, metadata.SNAPSHOT, metadata.TIMESTAMP} {
		public, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatalf("make a key: %v", err)
		}
		key, err := metadata.KeyFromPublicKey(public)
		if err == nil {
			err = stated.Signed.AddKey(key, role)
		}
		if err != nil {
			t.Fatalf("add a key: %v", err)
		}
		m.keys[role] = private
	}
	m.InitialRoot = signed(t, m, stated, metadata.ROOT)
	m.Publish(t, 1, trustedRoot, expires)
	return m
}

// Publish replaces what the mirror serves by a version of the repository that expires at the given time.
func (m *Mirror) Publish(t testing.TB, version int64, trustedRoot []byte, expires time.Time) {
	t.Helper()
	file, err := metadata.TargetFile().FromBytes("trusted_root.json", trustedRoot, "sha256")
	if err != nil {
		t.Fatalf("describe a target: %v", err)
	}
	targets := metadata.Targets(expires)
	targets.Signed.Version = version
	targets.Signed.Targets["trusted_root.json"] = file
	snapshot := metadata.Snapshot(expires)
	snapshot.Signed.Version = version
	snapshot.Signed.Meta["targets.json"] = metadata.MetaFile(version)
	timestamp := metadata.Timestamp(expires)
	timestamp.Signed.Version = version
	timestamp.Signed.Meta["snapshot.json"] = metadata.MetaFile(version)
	named := strconv.FormatInt(version, 10)
	files := map[string][]byte{
		"timestamp.json":            signed(t, m, timestamp, metadata.TIMESTAMP),
		named + ".snapshot.json":    signed(t, m, snapshot, metadata.SNAPSHOT),
		named + ".targets.json":     signed(t, m, targets, metadata.TARGETS),
		"targets/trusted_root.json": trustedRoot,
		"1.root.json":               m.InitialRoot,
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	m.files = files
}

func signed[T metadata.Roles](t testing.TB, m *Mirror, stated *metadata.Metadata[T], role string) []byte {
	t.Helper()
	signer, err := signature.LoadSigner(m.keys[role], crypto.Hash(0))
	if err == nil {
		_, err = stated.Sign(signer)
	}
	if err != nil {
		t.Fatalf("sign %s: %v", role, err)
	}
	encoded, err := stated.ToBytes(false)
	if err != nil {
		t.Fatalf("encode %s: %v", role, err)
	}
	return encoded
}

// Serve makes the mirror serve what another one serves.
func (m *Mirror) Serve(other *Mirror) {
	other.lock.Lock()
	files := other.files
	other.lock.Unlock()
	m.lock.Lock()
	defer m.lock.Unlock()
	m.files = files
}

// Break makes the mirror answer with errors, or no more.
func (m *Mirror) Break(broken bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.broken = broken
}

// Requests is how often the mirror was asked.
func (m *Mirror) Requests() int {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.requests
}

// ServeHTTP serves the repository's files. A target is asked for by the hash in its name, too.
func (m *Mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.lock.Lock()
	m.requests++
	name := strings.TrimPrefix(r.URL.Path, "/")
	if folder, file := path.Split(name); folder == "targets/" {
		if _, plain, hashed := strings.Cut(file, "."); hashed && plain == "trusted_root.json" {
			name = folder + plain
		}
	}
	content, found := m.files[name]
	broken := m.broken
	m.lock.Unlock()
	switch {
	case broken:
		http.Error(w, "broken", http.StatusBadGateway)
	case !found:
		http.NotFound(w, r)
	default:
		_, _ = w.Write(content)
	}
}
