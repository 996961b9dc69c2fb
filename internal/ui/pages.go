package ui

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/view"
)

// pageOf is what all pages have, around what is theirs.
type pageOf struct {
	Title string
	// Here is the page of the menu that it belongs to.
	Here string
	// Still says that changes are not told to whoever looks.
	Still bool
	// Troubles are what is missing on the page, and why.
	Troubles []string
	Content  any

	Base, Live, Theme, User, Script, Style string
	// Leaves says that there is a way to log out, and Again what helps when the login has ended.
	Leaves bool
	Again  string
}

// maxText is how much of a text is shown.
const maxText = 4096

// templates reads the pages. They write text of the cluster with line or lines alone.
func (u *UI) templates() (map[string]*template.Template, error) {
	functions := template.FuncMap{
		"base":      func() string { return u.base },
		"pages":     listPages,
		"title":     func(s string) string { return strings.ToUpper(s[:1]) + s[1:] },
		"line":      func(s any) string { return printable.Line(fmt.Sprint(s), maxText) },
		"lines":     lines,
		"brief":     func(s any) string { return printable.Line(fmt.Sprint(s), maxCell) },
		"short":     shorten,
		"link":      link,
		"since":     u.since,
		"mark":      mark,
		"lower":     func(s any) string { return strings.ToLower(fmt.Sprint(s)) },
		"to":        func(group, kind, namespace, name string) string { return u.base + at(group, kind, namespace, name) },
		"ours":      func(group, kind string) bool { _, ours := u.kindOf(group, kind); return ours },
		"sorts":     func() []string { return []string{"state", "since", "kind"} },
		"add":       func(a, b int) int { return a + b },
		"boxwidth":  func() int { return view.BoxWidth },
		"boxheight": func() int { return view.BoxHeight },
		"anchor":    (*Row).anchor,
	}
	made := map[string]*template.Template{}
	for _, name := range []string{"overview", "list", "object", "graph", "text", "module", "confirm", "failed", "login"} {
		parsed, err := template.New("page.html").Funcs(functions).ParseFS(templateFiles, "templates/page.html", "templates/parts.html", "templates/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("read the page %s: %w", name, err)
		}
		made[name] = parsed
	}
	return made, nil
}

const (
	// maxLines is how much of a text of several lines is shown, and lastLines how much of that is its end.
	maxLines, lastLines = 64 * maxText, 4 * maxText
)

// lines is text of several lines, in which nothing but the ends of lines has an effect. Of one that is too long the lines in the
// middle are left out: what sums it up stands at its end.
func lines(text string) string {
	all := strings.Split(text, "\n")
	size := 0
	for i, line := range all {
		all[i] = printable.Line(line, maxText)
		size += len(all[i]) + 1
	}
	from, to, kept := 0, len(all), 0
	for ; size > maxLines && kept+len(all[to-1]) < lastLines; to-- {
		kept += len(all[to-1]) + 1
	}
	for ; size > maxLines && kept+len(all[from]) < maxLines; from++ {
		kept += len(all[from]) + 1
	}
	if size > maxLines {
		all = slices.Replace(all, from, to, fmt.Sprintf("… %d lines are left out, which the command line shows …", to-from))
	}
	return strings.Join(all, "\n")
}

// nameWidth is how many characters of a name a box shows.
const nameWidth = 22

func shorten(s string) string {
	runes := []rune(printable.Line(s, maxText))
	if len(runes) <= nameWidth {
		return string(runes)
	}
	return string(runes[:nameWidth/2]) + "…" + string(runes[len(runes)-nameWidth/2+1:])
}

// link is the address if it is one that may be followed: another site that is asked for nothing but a page.
func link(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil || strings.ContainsAny(parsed.Host, "!\"$&'()*+,;<=>") {
		return ""
	}
	return parsed.String()
}

func (u *UI) since(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, u.Now().Sub(at)))
}

// mark is the shape that tells a state apart without its colour.
func mark(state view.State) string {
	return map[view.State]string{
		view.Ready: "✔", view.Progressing: "◐", view.Waiting: "◷", view.Held: "‖", view.Conflicted: "≠", view.Failed: "✗", view.Stalled: "⊘",
		view.Blocked: "▲", view.Deleting: "−", view.Suspended: "■", view.Paused: "■", view.New: "○",
	}[state]
}

// at is the path of an object's page, below the base.
func at(group, kind, namespace, name string) string {
	return path.Join("o", url.PathEscape(group), url.PathEscape(kind), url.PathEscape(namespace), url.PathEscape(name))
}

// show writes a page. What cannot be written is told as a fault of ours.
func (u *UI) show(w http.ResponseWriter, r *http.Request, code int, name string, page pageOf) {
	page.Base = u.base
	if known := loginOf(r); known != nil {
		page.User, page.Leaves = known.Name, u.key == nil && !u.ByHeader
	}
	page.Again = "load the page anew to log in"
	if u.key != nil {
		page.Again = "open the URL that the command prints"
	}
	page.Script, page.Style = u.base+"assets/"+u.assets.names["ui.js"], u.base+"assets/"+u.assets.names["ui.css"]
	if page.Here != "" && !page.Still {
		page.Live = u.liveOf(r)
	}
	page.Theme = themeOf(r)
	var body bytes.Buffer
	if err := u.pages[name].Execute(&body, page); err != nil {
		u.Logger.Error("The page could not be written", "page", name, "error", err)
		http.Error(w, "The page could not be written.", http.StatusInternalServerError)
		return
	}
	u.within(w, patience)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(body.Bytes()) // Whoever has gone does not miss it.
}

// fail says what is wrong.
func (u *UI) fail(w http.ResponseWriter, r *http.Request, code int, what string) {
	u.show(w, r, code, "failed", pageOf{Title: http.StatusText(code), Content: what})
}

const themeCookie = "sluice-theme"

func themeOf(r *http.Request) string {
	if chosen, err := r.Cookie(themeCookie); err == nil && (chosen.Value == "light" || chosen.Value == "dark") {
		return chosen.Value
	}
	return ""
}

// theme keeps whether pages are light or dark.
func (u *UI) theme(w http.ResponseWriter, r *http.Request) {
	//nolint:gosec // On this machine alone it is HTTP.
	http.SetCookie(w, &http.Cookie{Name: themeCookie, Value: r.PostFormValue("theme"), Path: u.base, Secure: u.key == nil, HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: int(365 * 24 * time.Hour / time.Second)})
	http.Redirect(w, r, u.base, http.StatusSeeOther)
}

// total is how many objects of a kind are in each state.
type total struct {
	Kind
	Counts []count
	All    int
}

type count struct {
	State view.State
	N     int
}

// summary is what the overview has.
type summary struct {
	Totals    []total
	Attention []*Row
	// More is how many there are beside those.
	More    int
	Changed []*Row
	// Where are the pages with objects that need attention.
	Where []string
}

const (
	// maxAttention and maxChanged are how many objects the overview names.
	maxAttention, maxChanged = 25, 10
)

// summarize sums the rows in the scope up.
func (x *index) summarize(may *scope) (found summary) {
	x.remember(func(known *memory) {
		if _, asked := known.summary[may.mark]; !asked {
			known.summary[may.mark] = x.sum(may)
		}
		found = known.summary[may.mark]
	})
	return found
}

func (x *index) sum(may *scope) summary {
	made := summary{}
	rows := x.all(may, anyKind)
	counts := map[[2]string]int{}
	for _, row := range rows {
		counts[[2]string{row.Kind.Resource, string(row.State)}]++
		if !needsAttention(row.State) {
			continue
		}
		made.Attention = append(made.Attention, row)
		if !slices.Contains(made.Where, row.Kind.Page) {
			made.Where = append(made.Where, row.Kind.Page)
		}
	}
	for _, kind := range x.kinds {
		one := total{Kind: kind}
		for _, state := range view.States() {
			if n := counts[[2]string{kind.Resource, string(state)}]; n > 0 {
				one.Counts = append(one.Counts, count{state, n})
				one.All += n
			}
		}
		made.Totals = append(made.Totals, one)
	}
	state := orders()["state"]
	slices.SortFunc(made.Attention, func(a, b *Row) int { return cmp.Or(state(a, b), byName(a, b)) })
	slices.Sort(made.Where)
	made.More = max(0, len(made.Attention)-maxAttention)
	made.Attention = made.Attention[:min(len(made.Attention), maxAttention)]
	since := orders()["since"]
	slices.SortFunc(rows, func(a, b *Row) int { return cmp.Or(since(a, b), byName(a, b)) })
	made.Changed = rows[:min(len(rows), maxChanged)]
	return made
}

func (u *UI) overview(w http.ResponseWriter, r *http.Request) {
	may := u.mayOf(r.Context(), loginOf(r), anyKind, "")
	u.show(w, r, http.StatusOK, "overview", pageOf{
		Title: "Overview", Here: "overview", Troubles: u.index.troubles(may, anyKind), Content: overviewed{u.index.summarize(may), loginOf(r).Reader.Running(r.Context())},
	})
}

func anyKind(Kind) bool { return true }
