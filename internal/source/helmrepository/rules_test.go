package helmrepository_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/helm"
	"sluice.dev/sluice/internal/helm/index"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/helmrepository"
	"sluice.dev/sluice/tests/upstream"
	"sluice.dev/sluice/tests/upstream/files"
)

// versions are those of a chart as whoever reads the artifact finds them.
func (r *repository) versions(outcome source.Outcome, chart string) []index.Version {
	r.t.Helper()
	artifact, err := r.store.Open(r.t.Context(), outcome.Record.Current.Path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = artifact.Close() }()
	table, err := r.store.Open(r.t.Context(), outcome.Record.Current.CompanionPath())
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = table.Close() }()
	from, isAt := artifact.(io.ReaderAt)
	tableAt, isTableAt := table.(io.ReaderAt)
	if !isAt || !isTableAt {
		r.t.Fatal("they cannot be read by offset")
	}
	found, err := index.Lookup(r.t.Context(), from, tableAt, chart)
	if err != nil {
		r.t.Fatal(err)
	}
	return found
}

// TestRule1ConnectionsBelongToAnIdentity: what an authority or a client's certificate opened serves nobody else, also while it
// is idle; nor does what one of them was shown.
func TestRule1ConnectionsBelongToAnIdentity(t *testing.T) {
	t.Parallel()
	ca, err := upstream.NewCA("authority")
	if err != nil {
		t.Fatal(err)
	}
	own, err := ca.Server("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	var callers []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		caller := "nobody"
		if shown := q.TLS.PeerCertificates; len(shown) > 0 {
			caller = shown[0].Subject.CommonName
		}
		callers = append(callers, caller)
		w.Header().Set("ETag", `"the same for all"`)
		send(nil, indexOf(1))(w, q)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{own.TLS}, ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	r := newRepository(t, helmrepository.Options{})
	r.obj.Spec.URL = server.URL
	pipeline := r.pipeline()
	run := func(name string, login credential.TLS) error {
		r.login.TLS = login
		_, err := r.runAs(pipeline, name)
		return err
	}
	trusting := credential.TLS{CA: ca.PEM()}
	if err := run("trusting", trusting); err != nil {
		t.Fatal(err)
	}
	unknown := &tls.CertificateVerificationError{}
	if err := run("trusting no authority", credential.TLS{}); !errors.As(err, &unknown) {
		t.Errorf("another's connection served it: %v", err)
	}
	for _, name := range []string{"one", "two", "one"} {
		shown, err := ca.Client(name)
		if err != nil {
			t.Fatal(err)
		}
		login := credential.TLS{CA: ca.PEM(), Certificate: shown.CertPEM, Key: credential.NewSecret(string(shown.KeyPEM))}
		if err := run(name, login); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"nobody", "one", "two", "one"}; !slices.Equal(callers, want) {
		t.Errorf("want requests by %q, got %q", want, callers)
	}
}

// TestRule6TheIndexesDigestReachesTheChart as it is written, also where nothing else of a version has changed, and where its
// neighbours are copied.
func TestRule6TheIndexesDigestReachesTheChart(t *testing.T) {
	t.Parallel()
	r := newRepository(t, helmrepository.Options{})
	pipeline, one, two := r.pipeline(), strings.Repeat("1a", 32), strings.Repeat("2b", 32)
	for _, want := range [][2]string{{one, two}, {two, two}, {"sha256:" + two, two}, {"", two}, {two, ""}, {one, two}} {
		text := "apiVersion: v1\nentries:\n  app:\n"
		for i, digest := range want {
			text += fmt.Sprintf("  - name: app\n    version: %d.0.0\n    urls: [app.tgz]\n", 2-i)
			if digest != "" {
				text += "    digest: " + digest + "\n"
			}
		}
		r.put(text)
		outcome, err := r.runAs(pipeline, "a")
		if err != nil {
			t.Fatal(err)
		}
		if found := r.versions(outcome, "app"); len(found) != 2 || found[0].Digest != want[0] || found[1].Digest != want[1] {
			t.Errorf("want %q, got %+v", want, found)
		}
	}
}

// TestRule4TheLimitIsTheLastSizeThatIsTaken, compressed and not.
func TestRule4TheLimitIsTheLastSizeThatIsTaken(t *testing.T) {
	t.Parallel()
	for _, compressed := range []bool{false, true} {
		for beyond := range int64(2) {
			text := indexOf(50)
			r := newRepository(t, helmrepository.Options{MaxIndexBytes: int64(len(text)) - beyond})
			if !compressed {
				r.server.WithoutCompression()
			}
			r.put(text)
			if _, err := r.runAs(r.pipeline(), "a"); (beyond == 0) != (err == nil) || err != nil && !errors.Is(err, helm.ErrTooLarge) {
				t.Errorf("compressed %t, %d beyond: got %v", compressed, beyond, err)
			}
		}
	}
}

// TestURLsOfAnIndexAreOnlyWritten: wherever its packages are, the index is stored as it is, and nobody is asked for any.
func TestURLsOfAnIndexAreOnlyWritten(t *testing.T) {
	t.Parallel()
	r, foreign := newRepository(t, helmrepository.Options{}), files.New(t)
	urls := []string{
		foreign.URL + "/app.tgz", strings.TrimPrefix(foreign.URL, "http:") + "/app.tgz", "/app.tgz", "../../app.tgz", "app.tgz?sig=x",
		"file:///etc/passwd", "http://169.254.169.254/latest", "oci://example.com/app", "https://u:p@example.com/app.tgz", "%zz", "",
	}
	text := "apiVersion: v1\nentries:\n  app:\n  - name: app\n    version: 1.0.0\n    urls:\n"
	for _, url := range urls {
		text += fmt.Sprintf("    - %q\n", url)
	}
	r.put(text)
	outcome, err := r.runAs(r.pipeline(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if found := r.versions(outcome, "app"); len(found) != 1 || !slices.Equal(found[0].URLs, urls) {
		t.Errorf("want %q, got %+v", urls, found)
	}
	if asked, own := foreign.Requests(), r.server.Requests(); len(asked) > 0 || len(own) != 1 {
		t.Errorf("asked for %v, %v", asked, own)
	}
}

// TestRule9NamesAndDepthsOfAnIndexAreOnlyData: no name in it becomes a path, versions with names that are none of a chart do not
// count, and what is nested too deep is refused.
func TestRule9NamesAndDepthsOfAnIndexAreOnlyData(t *testing.T) {
	t.Parallel()
	r := newRepository(t, helmrepository.Options{})
	before, err := os.ReadDir(r.opener.TempDir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"../../../etc/passwd", "/etc/passwd", "a/b", "..", ".", "C:\\x", "a\u202eb", "-", "null", "🙂"}
	var yaml, json strings.Builder
	yaml.WriteString("apiVersion: v1\nentries:\n")
	json.WriteString(`{"apiVersion": "v1", "entries": {`)
	for i, name := range names {
		fmt.Fprintf(&yaml, "  %q:\n  - name: app\n    version: 1.0.0\n  - name: %q\n    version: 2.0.0\n", name, "../"+name)
		fmt.Fprintf(&json, `%q: [{"name": "app", "version": "1.0.0"}, {"name": %q, "version": "2.0.0"}]`, name, "../"+name)
		if i < len(names)-1 {
			json.WriteString(", ")
		}
	}
	json.WriteString("}}")
	for form, text := range map[string]string{"YAML": yaml.String(), "JSON": json.String()} {
		r.put(text)
		outcome, err := r.runAs(r.pipeline(), "a")
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		if !strings.HasPrefix(outcome.Record.Current.Path, "helmrepository/n/a/index-") {
			t.Errorf("%s: stored as %s", form, outcome.Record.Current.Path)
		}
		for _, name := range names {
			if found := r.versions(outcome, name); len(found) != 1 || found[0].Version != "1.0.0" {
				t.Errorf("%s, %q: got %+v", form, name, found)
			}
		}
	}
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	for form, text := range map[string]string{
		"YAML":              "apiVersion: v1\nentries:\n  app:\n  - name: app\n    version: 1.0.0\n    keywords: " + deep + "\n",
		"YAML in its head":  "apiVersion: v1\nserverInfo: {a: " + deep + "}\nentries: {}\n",
		"YAML as a whole":   "{apiVersion: v1, entries: {app: " + deep + "}}\n",
		"YAML by its lines": "apiVersion: v1\nentries:\n  app:\n  - name: app\n    annotations:\n" + steps(5_000),
		"JSON":              `{"apiVersion": "v1", "entries": {"app": [{"name": "app", "keywords": ` + deep + `}]}}`,
		"JSON in its head":  `{"apiVersion": "v1", "serverInfo": ` + deep + `, "entries": {}}`,
	} {
		r.put(text)
		if _, err := r.runAs(r.pipeline(), "a"); !errors.Is(err, index.ErrIndex) || failure.Of(err).Reason != noIndex {
			t.Errorf("%s: got %.200v", form, err)
		}
	}
	if after, err := os.ReadDir(r.opener.TempDir); err != nil || len(after) != len(before) {
		t.Errorf("left %v, %v", after, err)
	}
}

// steps are lines of which each is nested in the one before.
func steps(levels int) string {
	var text strings.Builder
	for level := range levels {
		text.WriteString(strings.Repeat(" ", 6+level) + "a:\n")
	}
	return text.String()
}
