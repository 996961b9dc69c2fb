package helmrepository_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/helmrepository"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/upstream/files"
)

const (
	failed  = sourcev1.FailedReason
	noIndex = sourcev1.IndexationFailedReason
	fetch   = "failed to fetch Helm repository index: failed to cache index to temporary file: failed to fetch "
	load    = "failed to load Helm repository from index YAML: "
)

// send answers with a body of that content.
func send(header map[string]string, content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range header {
			w.Header().Set(name, value)
		}
		_, _ = io.WriteString(w, content) // The client may have gone.
	}
}

// endless sends the text over and over, until the client has gone.
func endless(header map[string]string, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range header {
			w.Header().Set(name, value)
		}
		for {
			if _, err := io.WriteString(w, text); err != nil {
				return
			}
		}
	}
}

func packed(text string, times int) string {
	var to bytes.Buffer
	w := gzip.NewWriter(&to)
	for range times {
		_, _ = io.WriteString(w, text) // A buffer takes all.
	}
	_ = w.Close()
	return to.String()
}

// bomb is YAML whose aliases stand for ten times as much at each level.
func bomb() string {
	var text strings.Builder
	text.WriteString("apiVersion: v1\nentries:\n  app:\n  - name: app\n    version: 1.0.0\n    annotations:\n      a0: &a0 " + strings.Repeat("x", 1000) + "\n")
	text.WriteString("    keywords:\n    - &l0 [" + strings.Repeat("*a0,", 10) + "x]\n")
	for level := 1; level < 9; level++ {
		fmt.Fprintf(&text, "    - &l%d [%sx]\n", level, strings.Repeat(fmt.Sprintf("*l%d,", level-1), 10))
	}
	return text.String()
}

// TestReasonsAreThoseOfFlux: what cannot be downloaded is Failed, and what is no index IndexationFailed; both are retried, say
// what is wrong, and leave nothing behind.
func TestReasonsAreThoseOfFlux(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		fault        http.HandlerFunc
		reason, says string
	}{
		"Missing":       {files.Status(http.StatusNotFound), failed, fetch + "URL/charts/index.yaml : 404 Not Found"},
		"Unauthorized":  {files.Status(http.StatusUnauthorized), failed, "401 Unauthorized"},
		"Forbidden":     {files.Status(http.StatusForbidden), failed, "403 Forbidden"},
		"Broken":        {files.Status(http.StatusBadGateway), failed, "502 Bad Gateway"},
		"Unasked304":    {files.Status(http.StatusNotModified), failed, "304 Not Modified"},
		"LyingLength":   {send(map[string]string{"Content-Length": strconv.Itoa(10 << 30)}, "x"), failed, "larger than allowed: 10737418240 bytes"},
		"CutOff":        {send(map[string]string{"Content-Length": "1000"}, "apiVersion: v1\n"), failed, "unexpected EOF"},
		"NoLength":      {endless(nil, strings.Repeat("a: b\n", 10000)), failed, "larger than allowed"},
		"GzipBomb":      {send(map[string]string{"Content-Encoding": "gzip"}, packed(strings.Repeat("\n", 1<<20), 100)), failed, "larger than allowed"},
		"EndlessGzip":   {endless(map[string]string{"Content-Encoding": "gzip"}, packed("\n", 1)), failed, "larger than allowed"},
		"BrokenGzip":    {send(map[string]string{"Content-Encoding": "gzip"}, "no gzip at all"), failed, "uncompress: "},
		"OtherEncoding": {send(map[string]string{"Content-Encoding": "br"}, "x"), failed, `encoded as "br"`},
		"Empty":         {send(nil, ""), noIndex, load + "not a valid index: empty index.yaml file"},
		"Page":          {send(nil, "<html><body>no index</body></html>"), noIndex, load},
		"NoAPIVersion":  {send(nil, "entries: {}\n"), noIndex, load + "not a valid index: no API version specified"},
		"UnknownField":  {send(nil, indexOf(1)+"surprise: 1\n"), noIndex, `unknown field "surprise"`},
		"UnknownInside": {send(nil, strings.Replace(indexOf(2), "urls:", "surprise: 1\n    urls:", 1)), noIndex, `version 1 of chart "app"`},
		"RepeatedKey":   {send(nil, strings.Replace(indexOf(2), "    urls:", "    name: app\n    urls:", 1)), noIndex, `key "name" already set`},
		"RepeatedChart": {send(nil, "apiVersion: v1\nentries:\n  a: []\n  a: []\n"), noIndex, `a chart is there twice: "a"`},
		"AliasBomb":     {send(nil, bomb()), noIndex, "aliases stand for more than"},
		"LongLine":      {send(nil, strings.Replace(indexOf(1), "1.0.0", strings.Repeat("9", 1<<20), 1)+strings.Repeat(" ", 1)), noIndex, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t, helmrepository.Options{MaxIndexBytes: 4 << 20})
			r.server.Fail(tc.fault)
			outcome, err := r.runAs(r.pipeline(), "a")
			if tc.says == "" && err == nil {
				return
			}
			var staged *source.StageError
			wanted := strings.ReplaceAll(tc.says, "URL", r.server.URL)
			if err == nil || failure.Of(err).Reason != tc.reason || failure.Of(err).Disposition != failure.Retries ||
				!strings.Contains(err.Error(), wanted) || !errors.As(err, &staged) {
				t.Fatalf("want %s with %q, got %v", tc.reason, wanted, err)
			}
			if staged.Stage != source.StageFetch && staged.Stage != source.StageResolve {
				t.Errorf("stage %s", staged.Stage)
			}
			if outcome.Record.Current.Path != "" {
				t.Errorf("stored %s", outcome.Record.Current.Path)
			}
			r.server.Heal()
			if _, err := r.runAs(r.pipeline(), "a"); err != nil {
				t.Errorf("it does not heal: %v", err)
			}
		})
	}
}

// TestRule4BoundWhileReading: an index takes what it is allowed to, in memory and in files, or is refused.
func TestRule4BoundWhileReading(t *testing.T) {
	t.Parallel()
	const budget = 64 << 20
	var million strings.Builder
	million.WriteString("apiVersion: v1\nentries:\n  a:\n")
	for v := range 1_000_000 {
		fmt.Fprintf(&million, "  - name: a\n    version: %d.0.0\n", v)
	}
	var charts strings.Builder
	charts.WriteString("apiVersion: v1\nentries:\n")
	for c := range 1_000_000 {
		fmt.Fprintf(&charts, "  c%d: []\n", c)
	}
	cases := map[string]struct{ index, says string }{
		"AMillionCharts":   {charts.String(), "charts: not enough memory"},
		"AMillionVersions": {million.String(), "versions: not enough memory"},
		"ALongLine":        {strings.Replace(indexOf(1), "name: app", "name: app\n    description: "+strings.Repeat("x", 10<<20), 1), "not enough memory"},
		"AnUnusualWhole":   {indexOf(1) + "{}\n" + strings.Repeat("# \n", 2<<20), "not enough memory"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t, helmrepository.Options{})
			r.put(tc.index)
			pipeline := r.pipeline()
			pipeline.Memory = memory.New(budget, "--memory-budget")
			pipeline.Files = memory.NewFiles(1<<30, "--tmp-budget")
			_, err := r.runAs(pipeline, "a")
			if !errors.Is(err, memory.ErrBudget) || !strings.Contains(err.Error(), tc.says) || failure.Of(err).Reason != noIndex {
				t.Errorf("got %v", err)
			}
			pipeline.Memory = nil
			pipeline.Files = memory.NewFiles(1<<20, "--tmp-budget")
			if _, err := r.runAs(pipeline, "b"); !errors.Is(err, memory.ErrBudget) {
				t.Errorf("files: got %v", err)
			}
		})
	}
}

// TestRule2CredentialsStayAtTheirOrigin: a redirect to another scheme, host or port gets none, and one to plain http is not
// followed.
func TestRule2CredentialsStayAtTheirOrigin(t *testing.T) {
	t.Parallel()
	for _, pass := range []bool{false, true} {
		r, other := newRepository(t, helmrepository.Options{}), files.New(t)
		other.Put("/charts/index.yaml", []byte(indexOf(3)))
		r.obj.Spec.PassCredentials = pass
		r.login.Username, r.login.Password = "u", credential.NewSecret("p")
		r.server.Fail(func(w http.ResponseWriter, q *http.Request) {
			if _, _, ok := q.BasicAuth(); !ok {
				t.Error("the origin gets no credential")
			}
			http.Redirect(w, q, other.URL+q.URL.Path, http.StatusFound)
		})
		if _, err := r.runAs(r.pipeline(), "a"); err != nil {
			t.Fatal(err)
		}
		for _, request := range other.Requests() {
			if request.Header.Get("Authorization") != "" {
				t.Error("another origin gets the credential")
			}
		}
	}
	r, secure := newRepository(t, helmrepository.Options{}), files.NewTLS(t)
	secure.Fail(func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, r.server.URL+q.URL.Path, http.StatusFound)
	})
	r.obj.Spec.URL, r.login.TLS.SkipVerify = secure.URL+"/charts", true
	if _, err := r.runAs(r.pipeline(), "a"); !errors.Is(err, transport.ErrRedirect) {
		t.Errorf("a downgrade: got %v", err)
	}
	r.obj.Spec.URL = r.server.URL
	r.server.Fail(func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, q.URL.Path, http.StatusFound) })
	if _, err := r.runAs(r.pipeline(), "a"); !errors.Is(err, transport.ErrRedirect) {
		t.Errorf("a circle: got %v", err)
	}
}

// TestRule10Egress: where an index leads by a redirect is dialled under the same policy as its URL.
func TestRule10Egress(t *testing.T) {
	t.Parallel()
	r := newRepository(t, helmrepository.Options{})
	r.server.Fail(func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, "http://169.254.169.254/index.yaml", http.StatusFound)
	})
	if _, err := r.runAs(r.pipeline(), "a"); !errors.Is(err, transport.ErrDenied) {
		t.Errorf("got %v", err)
	}
}

// TestRule3NothingIsToldThatWasSecret: neither the user info of a URL, nor its query, nor what a Secret holds.
func TestRule3NothingIsToldThatWasSecret(t *testing.T) {
	t.Parallel()
	r := newRepository(t, helmrepository.Options{})
	r.login.Username, r.login.Password = "the-user", credential.NewSecret("the-password")
	r.obj.Spec.URL = strings.Replace(r.server.URL, "://", "://someone:the-other@", 1) + "/none?sig=the-signature"
	_, err := r.runAs(r.pipeline(), "a")
	r.server.Fail(func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, "http://localhost:1/?sig=the-signature", http.StatusFound)
	})
	_, other := r.runAs(r.pipeline(), "a")
	for _, err := range []error{err, other} {
		if err == nil || strings.Contains(err.Error(), "the-") {
			t.Errorf("got %v", err)
		}
	}
}

// TestNothingIsLeftInTheTemporaryFolder: not after a success, and not after any failure.
func TestNothingIsLeftInTheTemporaryFolder(t *testing.T) {
	t.Parallel()
	r := newRepository(t, helmrepository.Options{})
	_, _ = r.runAs(r.pipeline(), "a")
	r.server.Fail(send(nil, "<html>"))
	_, _ = r.runAs(r.pipeline(), "a")
	r.server.Fail(send(map[string]string{"Content-Length": "1000"}, "x"))
	_, _ = r.runAs(r.pipeline(), "a")
	if left, err := os.ReadDir(r.opener.TempDir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// TestAFolderThatCannotBeWrittenIsToldOnce: its path says nothing to tenants, and names of temporary files are others each time,
// which would be news.
func TestAFolderThatCannotBeWrittenIsToldOnce(t *testing.T) {
	t.Parallel()
	r := newRepository(t, helmrepository.Options{})
	r.opener.TempDir = filepath.Join(t.TempDir(), "none")
	_, first := r.runAs(r.pipeline(), "a")
	_, second := r.runAs(r.pipeline(), "a")
	if first == nil || second == nil || first.Error() != second.Error() || strings.Contains(first.Error(), r.opener.TempDir) {
		t.Errorf("first %v, then %v", first, second)
	}
}
