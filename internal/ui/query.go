package ui

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/view"
)

// pageSize is how many rows a page has: Chromium takes half as long again for the first content of 100 rows as for that of 10.
const pageSize = 50

// query is what a table shows. It is the page's URL, and nothing else.
type query struct {
	Page string
	// Search is found in names, cells and messages; Kind and Namespace are whole, and State is one, or 'attention'.
	Search, Kind, Namespace, State string
	Sort                           string
	Number                         int
}

// attention asks for all objects that are in a state that somebody has to do something about.
const attention = "attention"

// needsAttention are those states.
func needsAttention(state view.State) bool {
	switch state {
	case view.Blocked, view.Stalled, view.Failed, view.Conflicted, view.Held, view.Waiting:
		return true
	case view.Deleting, view.Suspended, view.Paused, view.New, view.Progressing, view.Ready:
	}
	return false
}

// wants says whether objects of the kind are looked at.
func (q query) wants(k Kind) bool { return k.Page == q.Page && (q.Kind == "" || q.Kind == k.Kind) }

func queryOf(page string, values url.Values) query {
	number, err := strconv.Atoi(values.Get("page"))
	if err != nil || number < 1 {
		number = 1
	}
	return query{page, values.Get("q"), values.Get("kind"), values.Get("namespace"), values.Get("state"), values.Get("sort"), number}
}

// With is the URL, below the base, of the same table with another value; on its first page, unless that is what is asked for.
func (q query) With(name, value string) string {
	values := url.Values{}
	for key, now := range map[string]string{"q": q.Search, "kind": q.Kind, "namespace": q.Namespace, "state": q.State, "sort": q.Sort} {
		if now != "" {
			values.Set(key, now)
		}
	}
	if values.Del(name); value != "" {
		values.Set(name, value)
	}
	if len(values) == 0 {
		return q.Page
	}
	return q.Page + "?" + values.Encode()
}

// shown is what a query finds.
type shown struct {
	query

	Rows  []*Row
	Found int
	Last  int
}

// ask finds the rows of a query.
func (x *index) ask(q query, may *scope) (found shown) {
	x.remember(func(known *memory) {
		by := looked{q, may.mark}
		if _, asked := known.found[by]; !asked {
			known.found[by] = x.look(q, may)
		}
		found = known.found[by]
	})
	return found
}

// look looks through all rows.
func (x *index) look(q query, may *scope) shown {
	search := strings.ToLower(q.Search)
	rows := slices.DeleteFunc(x.all(may, q.wants), func(r *Row) bool {
		return q.Namespace != "" && r.Namespace != q.Namespace ||
			q.State == attention && !needsAttention(r.State) || q.State != "" && q.State != attention && q.State != string(r.State) ||
			!strings.Contains(r.text, search)
	})
	order := orders()[q.Sort]
	if order == nil {
		order = byName
	}
	slices.SortFunc(rows, func(a, b *Row) int { return cmp.Or(order(a, b), byName(a, b)) })
	found := shown{query: q, Found: len(rows), Last: max(1, (len(rows)+pageSize-1)/pageSize)}
	found.Number = min(found.Number, found.Last)
	first := (found.Number - 1) * pageSize
	found.Rows = slices.Clone(rows[first:min(first+pageSize, len(rows))]) // The others are not kept for them.
	return found
}

// searched is all of the row that a search looks at, in small letters.
func (r *Row) searched() string {
	all := append([]string{r.Namespace + "/" + r.Name, r.Kind.Kind, r.Reason, r.Message}, r.Cells...)
	return strings.ToLower(strings.Join(all, "\n"))
}

// orders are those in which rows can be asked for.
func orders() map[string]func(a, b *Row) int {
	return map[string]func(a, b *Row) int{
		"state": func(a, b *Row) int {
			return cmp.Compare(slices.Index(view.States(), a.State), slices.Index(view.States(), b.State))
		},
		"since": func(a, b *Row) int { return b.Since.Compare(a.Since) },
		"kind":  func(a, b *Row) int { return cmp.Compare(a.Kind.Kind, b.Kind.Kind) },
	}
}

func byName(a, b *Row) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind.Kind, b.Kind.Kind))
}

// list shows the objects of a page's kinds.
func (u *UI) list(page string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := queryOf(page, r.URL.Query())
		may := u.mayOf(r.Context(), loginOf(r), q.wants, q.Namespace)
		u.show(w, r, http.StatusOK, "list", pageOf{
			Title: strings.ToUpper(page[:1]) + page[1:], Here: page, Troubles: u.index.troubles(may, q.wants), Content: u.table(u.index.ask(q, may)),
		})
	}
}

// table is what a page says of the rows that were found.
type table struct {
	shown

	Kinds  []Kind
	States []view.State
	Titles []string
	// Several says that the rows are of several kinds.
	Several bool
}

func (u *UI) table(found shown) table {
	made := table{shown: found, States: view.States(), Kinds: u.index.kindsFor(func(k Kind) bool { return k.Page == found.Page })}
	made.Several = found.Kind == "" && len(made.Kinds) > 1
	for _, k := range made.Kinds {
		if !made.Several && (found.Kind == "" || found.Kind == k.Kind) {
			for _, c := range k.Columns {
				made.Titles = append(made.Titles, c.Title)
			}
		}
	}
	return made
}
