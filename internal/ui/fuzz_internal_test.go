package ui

import (
	"context"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog"
	"sluice.dev/sluice/internal/view"
)

var update = flag.Bool("update", false, "write the goldens anew")

// sayer is somebody who reads one text wherever the cluster has any.
type sayer struct {
	Reader

	text string
}

func (s sayer) Object(_ context.Context, kind Kind, namespace, name string) (*Object, error) {
	t := s.text
	remedies := []view.Remedy{{Cause: t, Remedy: t}}
	return &Object{
		Fact: view.Fact{State: view.Failed, Reason: t, Message: t}, Kind: kind, Namespace: namespace, Name: name, Version: "1", Remedies: remedies,
		Facts: []view.Titled{{Title: t, Value: t}}, Conditions: []view.Condition{{Condition: metav1.Condition{Type: t, Status: metav1.ConditionStatus(t), Reason: t, Message: t}, Remedies: remedies}},
		Attempts: []modulesv1.HistoryEntry{{Outcome: modulesv1.Outcome(t), Version: t, Template: t, Message: t}}, Events: []Event{{Type: t, Reason: t, Message: t}},
		YAML: t, Awaited: t, Lacking: []string{t},
	}, nil
}

func (s sayer) Tree(context.Context, Kind, string, string) (*view.Node, error) {
	t := s.text
	under := &view.Node{Group: t, Kind: t + t, Namespace: t, Name: t, State: view.Failed, Message: t, Note: t}
	return &view.Node{Kind: "Source", Group: "g", Name: t, State: view.Ready, Message: t, Note: t, Under: []*view.Node{under}, DependsOn: []*view.Node{under.Alone()}}, nil
}

func (s sayer) Module(_ context.Context, namespace, name string, _ []string) (*Module, error) {
	t := s.text
	return &Module{
		Namespace: namespace, Name: name, HasObject: true, Description: t, Read: true, Lacking: []string{t},
		Channels: []catalog.ChannelStatus{{Channel: modulesv1.Channel{Name: t}, Reason: t}},
		Releases: []catalog.Release{{Template: t, Version: t}},
		Users:    []ModuleUser{{Namespace: t, Name: t, SelectedBy: t, Channel: t, Has: ModuleRelease{t, t}, Gets: ModuleRelease{t + "x", t}, Waits: t}},
	}, nil
}

func (s sayer) Running(context.Context) *Running {
	return &Running{Program: s.text, Managers: []string{s.text}, Leaders: []Leader{{Lease: s.text, Holder: s.text}}, Lacking: []string{s.text}}
}

func (s sayer) Can(context.Context, *Object) []Action                { return []Action{Suspend} }
func (s sayer) Patch(*Object, Action) (string, error)                { return s.text, nil }
func (s sayer) Why(context.Context, string, string) (string, error)  { return s.text, nil }
func (s sayer) Plan(context.Context, string, string) (string, error) { return s.text, nil }
func (s sayer) Act(context.Context, *Object, Action, string) error   { return &ChangedError{s.text} }

// saying are pages on which the text stands wherever the cluster has one.
func saying(t *testing.T, text string) *UI {
	t.Helper()
	u := pagesOf(t)
	u.key.login.Person = &Person{Name: text, Reader: sayer{text: text}}
	u.Now = func() time.Time { return time.Unix(0, 0) }
	u.Actions = true
	kind := u.Kinds[0]
	kind.Columns = []Column{{"what", func(*unstructured.Unstructured) string { return text }}}
	obj := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": text, "name": text, "uid": "u", "resourceVersion": "1"},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": text, "message": text}}},
	}}
	u.index.change(kind, func(h *heard) {
		h.rows[types.NamespacedName{Namespace: "n", Name: "a"}], h.lacking = newRow(kind, obj), text
	})
	return u
}

// pagesWithText are pages that show text of the cluster.
func pagesWithText() map[string]string {
	const object = "o/g/Source/n/a"
	return map[string]string{
		"": http.MethodGet, "sources": http.MethodGet, object: http.MethodGet, object + "/graph": http.MethodGet, object + "/graph?as=list": http.MethodGet,
		object + "/do/suspend": http.MethodGet, "modules/n/a": http.MethodGet,
	}
}

var volatile = regexp.MustCompile(`/[A-Za-z0-9_-]{43}/`)

// bones are the elements of a page with the names of their attributes, and those of their values that a browser follows.
func bones(t *testing.T, page string) (elements, followed []string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for node := range root.Descendants() {
		if node.Type != html.ElementNode {
			continue
		}
		names := []string{node.Data}
		for _, a := range node.Attr {
			names = append(names, a.Key)
			if slices.Contains([]string{"href", "src", "action", "formaction", "data-live"}, a.Key) {
				followed = append(followed, a.Val)
			}
		}
		elements = append(elements, strings.Join(names, " "))
	}
	return elements, followed
}

// FuzzPages: no text of the cluster adds an element, an attribute, a place to go to, or a character that moves others.
func FuzzPages(f *testing.F) {
	for _, text := range []string{
		"a", `"><img src=x onerror=alert(1)>`, "</pre></title></svg><script>alert(1)</script>", "javascript:alert(1)", "https://example.com/'onclick=alert(1)//",
		"\u202egnp.exe\x1b[2J\x00\r\n", "{{.Title}}", "' autofocus onfocus='alert(1)", "\xff\xfe", strings.Repeat("<b>", 3000), "data:text/html,x", "//evil.example/", "../../..", `https://"0`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.TrimSpace(text) == "" {
			t.Skip("what is empty is left out")
		}
		harmless := "harmless"
		if link(text) != "" {
			harmless = "https://example.com/"
		}
		told, plain := saying(t, text), saying(t, harmless)
		for page, method := range pagesWithText() {
			got, want := told.asked(t, method, told.base+page), plain.asked(t, method, plain.base+page)
			body := got.Body.String()
			elements, followed := bones(t, body)
			expected, _ := bones(t, want.Body.String())
			if diff := cmp.Diff(expected, elements); diff != "" || got.Code != want.Code {
				t.Fatalf("%q on %s, status %d:\n%s", text, page, got.Code, diff)
			}
			for _, to := range followed {
				if !strings.HasPrefix(to, told.base) && !strings.HasPrefix(to, "#") && (!strings.HasPrefix(to, "https://") || link(to) == "") {
					t.Fatalf("%q on %s leads to %q", text, page, to)
				}
			}
			if at := strings.IndexFunc(body, func(r rune) bool {
				return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
			}); at >= 0 {
				t.Fatalf("%q on %s: %q moves others", text, page, body[at:min(len(body), at+8)])
			}
		}
	})
}

// TestGraphIsDrawn: a drawing as it was looked at.
func TestGraphIsDrawn(t *testing.T) {
	t.Parallel()
	u := pagesOf(t)
	u.key.login.Person = &Person{Reader: painter{}}
	_, page, _ := strings.Cut(u.asked(t, http.MethodGet, u.base+"o/g/Source/n/a/graph").Body.String(), "<svg")
	page, _, _ = strings.Cut(page, "</svg>")
	got := volatile.ReplaceAllString("<svg"+page+"</svg>\n", "/")
	place := filepath.Join("testdata", "graph.svg")
	if *update {
		if err := os.WriteFile(place, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(place)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the drawing (-want +got):\n%s", diff)
	}
}

// painter is somebody who reads a tree with all that drawings have.
type painter struct{ Reader }

func (painter) Tree(context.Context, Kind, string, string) (*view.Node, error) {
	first := &view.Node{Group: "g", Kind: "Source", Namespace: "n", Name: "first", State: view.Failed, Message: "it is down"}
	parts := []*view.Node{{Kind: "ConfigMap", Namespace: "n", Name: "settings", State: view.Ready}, {Kind: "Deployment", Namespace: "n", Name: "a-name-that-is-longer-than-a-box-has-room-for", State: view.Progressing}}
	return &view.Node{Name: "https://example.com/a.git", Under: []*view.Node{
		{Group: "g", Kind: "Source", Namespace: "n", Name: "a", State: view.Ready, Note: "main", DependsOn: []*view.Node{first}, Under: parts},
	}}, nil
}
