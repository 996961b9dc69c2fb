package git_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/tests/upstream"
)

const (
	oldID = "abababababababababababababababababababab"
	newID = "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd"
	able  = "report-status report-status-v2 delete-refs side-band-64k quiet atomic ofs-delta object-format=sha1 agent=x"
)

func pkt(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

// banded is a report as it comes on the first band.
func banded(lines ...string) string {
	report := ""
	for _, line := range lines {
		report += pkt(line + "\n")
	}
	return pkt("\x01"+report+"0000") + "0000"
}

// says is a server that answers each push with the same words. Its refs main and draft are at the old id.
func says(t *testing.T, capabilities, answer string) (git.Remote, *atomic.Int64) {
	t.Helper()
	pushes := &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // The client may leave.
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "application/x-git-receive-pack-advertisement")
			_, _ = io.WriteString(w, pkt("# service=git-receive-pack\n")+"0000"+pkt(oldID+" refs/heads/draft\x00"+capabilities+"\n")+
				pkt(oldID+" refs/heads/main\n")+pkt(oldID+" .have\n")+"0000")
			return
		}
		pushes.Add(1)
		w.Header().Set("Content-Type", "application/x-git-receive-pack-result")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return signed(server.URL + "/app"), pushes
}

// TestServersWordsOnAPush are read strictly, shown safely, and taken for what they mean.
func TestServersWordsOnAPush(t *testing.T) {
	t.Parallel()
	two := []git.Update{{Ref: "refs/heads/main", Old: oldID, New: newID}, {Ref: "refs/heads/draft", Old: oldID}}
	okay := []string{"unpack ok", "ok refs/heads/main", "ok refs/heads/draft"}
	hostile := "\x1b[31mgo away\r\n\x00 " + canary + " <b>" + strings.Repeat("long ", 1000)
	none := errors.New("no error") // stands for it
	for name, c := range map[string]struct {
		capabilities, answer string
		whole                error // of the push, or those of the refs
		main, draft          error
	}{
		"all is well":     {able, banded(okay...), nil, none, none},
		"without bands":   {"report-status delete-refs", pkt("unpack ok\n") + pkt("ok refs/heads/main") + pkt("ok refs/heads/draft\n") + "0000", nil, none, none},
		"with options":    {able, banded("unpack ok", "ok refs/heads/main", "option old-oid "+oldID, "option new-oid "+newID, "option forced-update", "ok refs/heads/draft", "option new-oid "+strings.Repeat("0", 40)), nil, none, none},
		"elsewhere":       {able, banded("unpack ok", "ok refs/heads/main", "option refname refs/heads/other", "ok refs/heads/draft"), nil, git.ErrRejected, none},
		"another commit":  {able, banded("unpack ok", "ok refs/heads/main", "option new-oid "+oldID, "ok refs/heads/draft"), nil, git.ErrRejected, none},
		"words":           {able, pkt("\x02remote: "+hostile) + banded("unpack ok", "ng refs/heads/main "+hostile, "ok refs/heads/draft"), nil, git.ErrRejected, none},
		"no words":        {able, banded("unpack ok", "ng refs/heads/main", "ok refs/heads/draft"), nil, git.ErrRejected, none},
		"lock":            {able, banded("unpack ok", "ng refs/heads/main failed to update ref", "ng refs/heads/draft lock failure"), nil, git.ErrRefMoved, git.ErrRefMoved},
		"not unpacked":    {able, banded("unpack index-pack abnormal exit", "ng refs/heads/main unpacker error", "ng refs/heads/draft unpacker error"), nil, git.ErrRejected, git.ErrRejected},
		"unpack lies":     {able, banded("unpack "+hostile, "ok refs/heads/main", "ok refs/heads/draft"), nil, git.ErrRejected, git.ErrRejected},
		"one is missing":  {able, banded(okay[:2]...), git.ErrProtocol, nil, nil},
		"one too many":    {able, banded(append(okay, "ok refs/heads/other")...), git.ErrProtocol, nil, nil},
		"another one":     {able, banded("unpack ok", "ok refs/heads/main", "ok refs/heads/other"), git.ErrProtocol, nil, nil},
		"twice":           {able, banded("unpack ok", "ok refs/heads/main", "ng refs/heads/main no"), git.ErrProtocol, nil, nil},
		"no name":         {able, banded("unpack ok", "ok "), git.ErrProtocol, nil, nil},
		"no report":       {able, "0000", git.ErrProtocol, nil, nil},
		"other words":     {able, banded(hostile), git.ErrProtocol, nil, nil},
		"lost option":     {able, banded("unpack ok", "option refname x"), git.ErrProtocol, nil, nil},
		"option of no":    {able, banded("unpack ok", "ng refs/heads/main no", "option refname x", "ok refs/heads/draft"), git.ErrProtocol, nil, nil},
		"many options":    {able, banded(append([]string{"unpack ok", "ok refs/heads/main"}, strings.Split(strings.Repeat("option forced-update,", 20), ",")...)...), git.ErrProtocol, nil, nil},
		"no end":          {able, pkt("\x01" + pkt("unpack ok\n") + pkt("ok refs/heads/main\n") + pkt("ok refs/heads/draft\n")), nil, nil, nil},
		"error band":      {able, pkt("\x03" + hostile), git.ErrProtocol, nil, nil},
		"error":           {able, pkt("ERR " + hostile), git.ErrProtocol, nil, nil},
		"unknown band":    {able, pkt("\x07x"), git.ErrProtocol, nil, nil},
		"nothing":         {able, "", git.ErrProtocol, nil, nil},
		"html":            {able, "<html>", git.ErrProtocol, nil, nil},
		"endless talk":    {able, strings.Repeat(pkt("\x02"+strings.Repeat("x", 60_000)), 600), git.ErrLimit, nil, nil},
		"removes nothing": {"report-status side-band-64k", banded("unpack ok", "ok refs/heads/main"), nil, none, git.ErrRejected},
	} {
		remote, _ := says(t, c.capabilities, c.answer)
		results, err := newClient(t).Push(t.Context(), remote, git.PushRequest{Updates: two})
		if c.whole != nil || c.main == nil {
			checkError(t, name, err, c.whole)
			continue
		}
		if err != nil || len(results) != 2 {
			t.Errorf("%s: %v, %v", name, results, err)
			continue
		}
		for i, want := range []error{c.main, c.draft} {
			got := results[i].Err
			if errors.Is(want, none) {
				if got != nil {
					t.Errorf("%s: %s: %v", name, results[i].Ref, got)
				}
				continue
			}
			checkError(t, name+" "+results[i].Ref, got, want)
			if got != nil && len(got.Error()) > 1100 {
				t.Errorf("%s: %d bytes of words", name, len(got.Error()))
			}
		}
	}
}

// TestServersThatCannotTakeAPush are told apart before anything is sent.
func TestServersThatCannotTakeAPush(t *testing.T) {
	t.Parallel()
	update := []git.Update{{Ref: "refs/heads/main", Old: oldID, New: newID}}
	for name, c := range map[string]struct {
		capabilities string
		updates      []git.Update
		want         error
	}{
		"no report":  {"delete-refs side-band-64k", update, git.ErrProtocol},
		"sha256":     {able + " object-format=sha256", update, git.ErrProtocol},
		"HEAD":       {able, []git.Update{{Ref: "HEAD", New: newID}}, git.ErrProtocol},
		"short name": {able, []git.Update{{Ref: "main", New: newID}}, git.ErrProtocol},
		"bad name":   {able, []git.Update{{Ref: "refs/heads/a b\n", New: newID}}, git.ErrProtocol},
		"twice":      {able, []git.Update{update[0], update[0]}, git.ErrProtocol},
		"no id":      {able, []git.Update{{Ref: "refs/heads/main", Old: oldID, New: "HEAD"}}, git.ErrProtocol},
		"no old id":  {able, []git.Update{{Ref: "refs/heads/main", Old: oldID[:39], New: newID}}, git.ErrProtocol},
		"capitals":   {able, []git.Update{{Ref: "refs/heads/main", Old: strings.ToUpper(oldID), New: newID}}, git.ErrProtocol},
	} {
		remote, pushes := says(t, c.capabilities, "")
		_, err := newClient(t).Push(t.Context(), remote, git.PushRequest{Updates: c.updates})
		checkError(t, name, err, c.want)
		if pushes.Load() > 0 {
			t.Errorf("%s: it was sent", name)
		}
	}
	remote, pushes := says(t, able, "")
	for i, updates := range [][]git.Update{nil, {{Ref: "refs/heads/main", Old: newID, New: oldID}}, {{Ref: "refs/heads/none"}}} {
		results, err := newClient(t).Push(t.Context(), remote, git.PushRequest{Updates: updates, Atomic: true})
		if err != nil || pushes.Load() > 0 || len(results) != len(updates) || len(results) > 0 && results[0].Err != nil {
			t.Errorf("%d is done already: %v, %v, %d pushes", i, results, err, pushes.Load())
		}
	}
}

// TestRulesOfServers are refusals of single refs, with the words of hooks, and others go through.
func TestRulesOfServers(t *testing.T) {
	t.Parallel()
	for _, over := range transports() {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			w := newWriter(t, over)
			w.Raw("config", "receive.denyNonFastForwards", "true")
			w.Raw("config", "receive.denyDeletes", "true")
			first := w.Commit("main", "first", upstream.Text(map[string]string{"a": "1"}))
			second := w.Commit("main", "second", upstream.Text(map[string]string{"a": "2"}))
			w.SetRef("refs/heads/goes", first)
			w.Hook("update", `case "$1" in refs/heads/protected/*)
				printf 'GH006: \033[1mProtected\033[0m branch\n  needs a review by %s\n' `+map[string]string{"http": canary, "ssh": "Ada"}[over]+` >&2; exit 1;; esac`)
			objects := w.compose(second)
			mine := w.commit(objects, commitOn(second, folder("b", map[string]string{"b": "b"})))
			updates := []git.Update{
				{Ref: "refs/heads/protected/x", New: mine},
				{Ref: "refs/heads/main", Old: second, New: first},
				{Ref: "refs/heads/goes", Old: first},
				{Ref: "refs/heads/main/below", New: mine},
				{Ref: "refs/tags/unknown", New: strings.Repeat("ab", 20)},
				{Ref: "refs/tags/fine", New: mine},
			}
			results, err := w.client.Push(t.Context(), w.remote, git.PushRequest{Objects: objects, Updates: updates})
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range results {
				if i == len(results)-1 {
					if r.Err != nil {
						t.Errorf("%s: %v", r.Ref, r.Err)
					}
					continue
				}
				checkError(t, r.Ref, r.Err, git.ErrRejected)
			}
			if text := results[0].Err.Error(); over == "http" && !strings.Contains(text, "GH006") {
				t.Errorf("the hook's words are missing: %s", text)
			}
			if got := w.Raw("for-each-ref", "--format=%(refname) %(objectname)"); got != "refs/heads/goes "+first+"\nrefs/heads/main "+second+"\nrefs/tags/fine "+mine {
				t.Errorf("refs: %s", got)
			}
			w.sound()
		})
	}
}

// TestAThousandUpdates are one request, and none is lost.
func TestAThousandUpdates(t *testing.T) {
	t.Parallel()
	w := newWriter(t, "http", keeping(t.TempDir(), &hows{}))
	first := w.Commit("main", "first", various())
	objects := w.compose(first)
	var updates []git.Update
	for i := range 1000 {
		id := w.commit(objects, commitOn(first, folder(fmt.Sprintf("pkg/p%d", i), map[string]string{"Kptfile": fmt.Sprint(i)})))
		updates = append(updates, git.Update{Ref: fmt.Sprintf("refs/heads/drafts/pkg/p%d/v1", i), New: id})
	}
	w.server.Reset()
	w.moves(git.PushRequest{Objects: objects, Updates: updates})
	if got := w.server.Count(); got != 2 {
		t.Errorf("%d requests", got)
	}
	if got := strings.Count(w.Raw("for-each-ref", "refs/heads/drafts"), "\n") + 1; got != 1000 {
		t.Errorf("%d refs", got)
	}
	if got := w.Raw("show", "drafts/pkg/p777/v1:pkg/p777/Kptfile"); got != "777" {
		t.Errorf("p777: %s", got)
	}
	w.sound()
}

// TestFaultsOfPushesHaveNames.
func TestFaultsOfPushesHaveNames(t *testing.T) {
	t.Parallel()
	w := newWriter(t, "http")
	first := w.Commit("main", "first", upstream.Text(map[string]string{"a": "1"}))
	objects := w.compose(first)
	mine := w.commit(objects, commitOn(first))
	request := git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: "refs/heads/main", Old: first, New: mine}}}
	for name, c := range map[string]struct {
		fault upstream.Fault
		want  error
	}{
		"401": {upstream.Status(401), git.ErrAuthentication}, "403": {upstream.Status(403), git.ErrAuthentication},
		"404": {upstream.Status(404), git.ErrNotFound}, "413": {upstream.Status(413), git.ErrProtocol}, "500": {upstream.Status(500), nil},
		"html": {upstream.HTML(), git.ErrProtocol}, "garbage": {upstream.Garbage(), git.ErrProtocol}, "drop": {upstream.Drop(), nil},
		"endless": {upstream.Endless(), git.ErrLimit},
	} {
		for _, kind := range []upstream.Kind{upstream.PushRefs, upstream.Push} {
			w.server.Always(c.fault.On(kind))
			client := newClient(t, func(o *git.Options) { o.MaxRefs = 1000 })
			_, err := client.Push(t.Context(), w.remote, request)
			checkError(t, name+" "+string(kind), err, c.want)
			w.server.Heal()
		}
	}
	if got := w.Raw("rev-parse", "main"); got != first {
		t.Errorf("main is at %s", got)
	}
	w.moves(request)

	_, err := newClient(t).Push(t.Context(), git.Remote{URL: w.remote.URL}, request)
	checkError(t, "no credential", err, git.ErrAuthentication)
	_, err = newClient(t).Push(t.Context(), signed(w.server.URL("none")), request)
	checkError(t, "no repository", err, git.ErrNotFound)
	w.Raw("config", "http.receivepack", "false")
	_, err = newClient(t).Push(t.Context(), w.remote, request)
	checkError(t, "read only", err, git.ErrAuthentication)
	_, err = newClient(t).Push(t.Context(), git.Remote{URL: "file:///x"}, request)
	checkError(t, "url", err, git.ErrURL)
}

// TestNoOtherOriginGetsACredential when a push is redirected: its advertisement as that of a fetch, the push itself not at all.
func TestNoOtherOriginGetsACredential(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	repository.AcceptPushes()
	home, other := f.HTTP(upstream.HTTPOptions{}), f.HTTP(upstream.HTTPOptions{})
	client := newClient(t)
	w := &writer{Edited: repository, t: t, client: client, server: home, remote: git.Remote{
		URL: home.URL("app"), Credential: credential.Git{BearerToken: credential.NewSecret(canary)},
	}}
	objects := w.compose()
	first := w.commit(objects, commitOn(""))
	request := git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: "refs/heads/main", New: first}}}
	for _, code := range []int{301, 302, 307, 308} {
		home.Always(upstream.Redirect(code, other.BaseURL()).On(upstream.Push))
		_, err := client.Push(t.Context(), w.remote, request)
		checkError(t, fmt.Sprint(code), err, git.ErrProtocol)
		if other.Count() > 0 {
			t.Errorf("%d: the push went on to another origin", code)
		}
		home.Heal()
	}
	home.Always(upstream.Redirect(302, other.BaseURL()).On(upstream.PushRefs))
	w.moves(request)
	for _, r := range other.Requests() {
		if r.Authorized {
			t.Errorf("%s %s has the credential", r.Method, r.URI)
		}
	}
	if other.Count(upstream.Push) != 1 {
		t.Error("the redirect of the advertisement was not followed")
	}
}

// TestObjectsOfForks are told of beside the refs, and are none.
func TestObjectsOfForks(t *testing.T) {
	t.Parallel()
	w := newWriter(t, "http")
	origin := upstream.ForTest(t).Repository("origin")
	shared := origin.Commit("main", "shared", various())
	w.Raw("config", "core.alternateRefsPrefixes", "refs/heads/")
	if _, err := w.RawInput([]byte(origin.Dir()+"/objects\n"), "-c", "alias.borrow=!cat >objects/info/alternates", "borrow"); err != nil {
		t.Fatal(err)
	}
	w.SetRef("refs/heads/main", shared)
	objects := w.compose(shared)
	mine := w.commit(objects, commitOn(shared, folder("b", map[string]string{"b": "b"})))
	w.moves(git.PushRequest{Objects: objects, Updates: []git.Update{{Ref: "refs/heads/main", Old: shared, New: mine}}})
	w.sound()
}
