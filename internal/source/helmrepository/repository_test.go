package helmrepository_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/helm"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/helmrepository"
	"sluice.dev/sluice/internal/source/sourcetest"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/storage"
	"sluice.dev/sluice/storage/local"
	"sluice.dev/sluice/storage/local/localtest"
	"sluice.dev/sluice/tests/upstream/files"
)

// logins gives every object the same credential.
type logins struct{ credential.Login }

func (l logins) Helm(_ context.Context, r auth.HelmRequest) (credential.Login, string, error) {
	clean, _, err := auth.SplitURL(r.URL)
	return l.Login, clean, err
}

// repository is a server of files with one object that follows its index.
type repository struct {
	t       *testing.T
	server  *files.Server
	store   *localtest.Store
	opener  *helmrepository.Opener
	login   *logins
	obj     *sourcev1.HelmRepository
	version int
	// received is how many bytes were read of what the server sent.
	received atomic.Int64
}

func newRepository(t *testing.T, options helmrepository.Options) *repository {
	t.Helper()
	r := &repository{t: t, server: files.New(t), store: localtest.Open(t, local.Options{}), login: &logins{}}
	options.Client = helm.NewClient(transport.New(transport.Options{AllowLoopback: true}), clock.RealClock{}, func(bytes int64) { r.received.Add(bytes) })
	options.Credentials, options.Store, options.TempDir = r.login, r.store, t.TempDir()
	r.opener = helmrepository.NewOpener(options)
	r.obj = &sourcev1.HelmRepository{Spec: sourcev1.HelmRepositorySpec{URL: r.server.URL + "/charts/"}}
	r.Advance()
	return r
}

// put makes the index say so.
func (r *repository) put(index string) { r.server.Put("/charts/index.yaml", []byte(index)) }

// indexOf has so many versions of a chart.
func indexOf(versions int) string {
	var text strings.Builder
	text.WriteString("apiVersion: v1\nentries:\n  app:\n")
	for v := range versions {
		fmt.Fprintf(&text, "  - apiVersion: v2\n    name: app\n    version: 1.%d.0\n    urls:\n    - app-1.%d.0.tgz\n", v, v)
	}
	text.WriteString("generated: \"2026-01-02T03:04:05Z\"\n")
	return text.String()
}

func (r *repository) Open(ctx context.Context) (source.Session, error) {
	return r.opener.Open(ctx, r.obj)
}

func (r *repository) Advance() {
	r.version++
	r.put(indexOf(r.version))
}

func (r *repository) Break() func() {
	r.server.Fail(files.Status(http.StatusServiceUnavailable))
	return r.server.Heal
}

func (r *repository) Fetches() int { return r.server.Downloads() }

func (r *repository) Files() map[string]string {
	found := map[string]string{}
	for v := range r.version {
		found[fmt.Sprintf("app-1.%d.0.tgz", v)] = fmt.Sprintf("1.%d.0", v)
	}
	return found
}

// Unpack implements sourcetest.Unpacker.
func (r *repository) Unpack(artifact io.Reader) map[string]string {
	var stored struct {
		Entries map[string][]struct {
			Version string
			URLs    []string
		}
	}
	text, err := io.ReadAll(artifact)
	if err == nil {
		err = json.Unmarshal(text, &stored)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	found := map[string]string{}
	for _, version := range stored.Entries["app"] {
		found[version.URLs[0]] = version.Version
	}
	return found
}

// Nameless implements sourcetest.Nameless.
func (*repository) Nameless() {}

var (
	_ sourcetest.Unpacker = (*repository)(nil)
	_ sourcetest.Nameless = (*repository)(nil)
)

func TestContract(t *testing.T) {
	t.Parallel()
	sourcetest.Run(t, func(t *testing.T) sourcetest.Upstream {
		t.Helper()
		return newRepository(t, helmrepository.Options{})
	})
}

// runAs takes an object of the name through the pipeline.
func (r *repository) runAs(p *source.Pipeline, name string) (source.Outcome, error) {
	subject := source.Subject{Object: storage.Object{Kind: "helmrepository", Namespace: "n", Name: name}, UID: "u-" + name, Timeout: time.Minute}
	return p.Run(r.t.Context(), subject, r.Open, func(context.Context, source.Change) error { return nil })
}

func (r *repository) pipeline() *source.Pipeline {
	return &source.Pipeline{Store: r.store, Clock: clock.RealClock{}, Observer: sourcetest.Silent{}}
}
