package pkgrepo_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/upstream"
)

// shop is a repository of packages on a real server, in which the git program is the other writer.
type shop struct {
	*upstream.Edited
	*pkgrepo.Repository

	t        testing.TB
	settings pkgrepo.Settings
	options  pkgrepo.Options
	depot    *pkgrepo.Depot
	client   *git.Client
	server   *upstream.GitHTTP // nil over SSH
}

// overHTTP and overSSH are the transports.
const (
	overHTTP = "http"
	overSSH  = "ssh"
)

func newShop(tb testing.TB, over string, change ...func(*shop)) *shop {
	tb.Helper()
	f := upstream.ForTest(tb)
	s := &shop{t: tb, Edited: f.Repository("shop")}
	s.AcceptPushes()
	var remote git.Remote
	switch over {
	case overSSH:
		server := f.SSH(upstream.SSHOptions{})
		key, err := server.Key().PEM()
		if err != nil {
			tb.Fatal(err)
		}
		remote.URL = server.URL("shop")
		remote.Credential.SSH = &credential.SSH{PrivateKey: credential.NewSecret(key), KnownHosts: server.KnownHosts()}
	default:
		s.server = f.HTTP(upstream.HTTPOptions{})
		remote.URL = s.server.URL("shop")
	}
	s.settings = pkgrepo.Settings{Fetch: remote, Push: remote, Author: pkgrepo.Person{Name: "Sluice", Email: "sluice@shop.example"}}
	s.options.Clock = clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for _, c := range change {
		c(s)
	}
	s.restart()
	return s
}

// restart forgets everything that is in memory, and leaves the cache on disk behind.
func (s *shop) restart() {
	s.t.Helper()
	factory := transport.New(transport.Options{AllowLoopback: true})
	s.t.Cleanup(factory.Close)
	client, err := git.New(git.Options{Transport: factory, TempDir: s.t.TempDir(), CacheDir: s.t.TempDir(), MaxCacheBytes: 1 << 30})
	if err != nil {
		s.t.Fatal(err)
	}
	s.client = client
	s.depot = pkgrepo.New(client, s.options)
	s.Repository = s.depot.Repository(s.settings)
}

// sync looks what there is.
func (s *shop) sync() *pkgrepo.Snapshot {
	s.t.Helper()
	found, _, err := s.Sync(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// apply carries out changes, all of which must be good.
func (s *shop) apply(changes ...pkgrepo.Change) []pkgrepo.Result {
	s.t.Helper()
	results := s.Apply(s.t.Context(), changes)
	for i, r := range results {
		if r.Err != nil {
			s.t.Fatalf("%s %s %s: %v", changes[i].Kind, changes[i].Package, changes[i].Workspace, r.Err)
		}
	}
	return results
}

// one carries out one change.
func (s *shop) one(change pkgrepo.Change) pkgrepo.Result {
	s.t.Helper()
	return s.apply(change)[0]
}

// kptfile is a Kptfile with annotations, as key and value in turn.
func kptfile(name string, annotations ...string) string {
	text := "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: " + name + "\n"
	for i := 0; i+1 < len(annotations); i += 2 {
		if i == 0 {
			text += "  annotations:\n"
		}
		text += fmt.Sprintf("    %s: %q\n", annotations[i], annotations[i+1])
	}
	return text
}

// packaged are the files of a package in a folder.
func packaged(path string, contents ...string) upstream.Files {
	files := map[string]string{path + "/Kptfile": kptfile(path[strings.LastIndexByte(path, '/')+1:])}
	for i, content := range contents {
		files[fmt.Sprintf("%s/file%d.yaml", path, i)] = content
	}
	return upstream.Text(files)
}

func together(all ...upstream.Files) upstream.Files {
	files := upstream.Files{}
	for _, f := range all {
		maps.Copy(files, f)
	}
	return files
}

// content is a package that was begun on what is on the branch.
func content(now pkgrepo.Current, contents map[string]string) kpt.Package {
	base := kpt.BaseNone
	if now.Branch != nil {
		base = now.Branch.Tree
	}
	made := kpt.Package{kpt.KptfileName: {Mode: 0o644, Content: []byte(kptfile("made", kpt.AnnotationBase, base))}}
	for name, text := range contents {
		made[name] = kpt.File{Mode: 0o644, Content: []byte(text)}
	}
	return made
}

// write is a change that puts one file into a package.
func write(pkg, workspace, text string) pkgrepo.Change {
	return pkgrepo.Change{
		Kind: pkgrepo.Write, Package: pkg, Workspace: workspace,
		Make: func(_ context.Context, now pkgrepo.Current) (pkgrepo.Made, error) {
			return pkgrepo.Made{Package: content(now, map[string]string{"a.yaml": text})}, nil
		},
	}
}

// publish writes a package and publishes it.
func (s *shop) publish(pkg, text string) pkgrepo.Result {
	s.t.Helper()
	draft := s.one(write(pkg, "", text))
	return s.one(pkgrepo.Change{Kind: pkgrepo.Publish, Package: pkg, Workspace: draft.Workspace, Expect: draft.Commit})
}

// refs are all branches and tags, by name.
func (s *shop) refs() map[string]string {
	s.t.Helper()
	refs := map[string]string{}
	for line := range strings.Lines(s.Raw("for-each-ref", "--format=%(objectname) %(refname)")) {
		id, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		refs[name] = id
	}
	return refs
}

func (s *shop) names() []string { return slices.Sorted(maps.Keys(s.refs())) }

// at is Git's id of what a revision expression names.
func (s *shop) at(expression string) string {
	s.t.Helper()
	return s.Raw("rev-parse", expression)
}

// sound has Git look at everything in the repository.
func (s *shop) sound() {
	s.t.Helper()
	if said := s.Raw("fsck", "--strict", "--full", "--no-dangling"); said != "" {
		s.t.Error(said)
	}
}
