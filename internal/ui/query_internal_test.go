package ui

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/view"
)

// filled is an index of so many sources and one package.
func filled(n int) *index {
	sources := Kind{GroupVersionKind: schema.GroupVersionKind{Group: "g", Kind: "Source"}, Resource: "sources", Page: "sources"}
	packages := Kind{GroupVersionKind: schema.GroupVersionKind{Group: "g", Kind: "Package"}, Resource: "packages", Page: "packages"}
	x := newIndex([]Kind{sources, packages}, time.Now)
	add := func(kind Kind, i int) {
		states := view.States()
		row := &Row{Kind: kind, Namespace: fmt.Sprint("n", i%3), Name: fmt.Sprintf("a%04d", i), UID: types.UID(fmt.Sprint(kind.Kind, i)), Cells: []string{fmt.Sprint("cell", i)}}
		row.State, row.Since, row.Message = states[i%len(states)], time.Unix(int64(i), 0), "Message "+fmt.Sprint(i)
		row.text = row.searched()
		x.heard[kind.Resource].rows[types.NamespacedName{Namespace: row.Namespace, Name: row.Name}] = row
	}
	for i := range n {
		add(sources, i)
	}
	add(packages, 0)
	return x
}

// TestQuery: what is found, in which order, and on which page.
func TestQuery(t *testing.T) {
	t.Parallel()
	x := filled(250)
	for asked, want := range map[string]struct {
		found, rows int
		first       string
	}{
		"":                               {250, 50, "n0/a0000"},
		"page=3":                         {250, 50, "n1/a0049"},
		"page=99":                        {250, 50, "n2/a0101"},
		"page=-1":                        {250, 50, "n0/a0000"},
		"page=x":                         {250, 50, "n0/a0000"},
		"namespace=n1":                   {83, 50, "n1/a0001"},
		"namespace=n1&page=2":            {83, 33, "n1/a0151"},
		"state=Ready":                    {20, 20, "n2/a0011"},
		"state=attention&sort=state":     {125, 50, "n0/a0000"},
		"q=CELL249":                      {1, 1, "n0/a0249"},
		"q=message+249":                  {1, 1, "n0/a0249"},
		"q=n2%2Fa0002":                   {1, 1, "n2/a0002"},
		"q=nothing+like+it":              {0, 0, ""},
		"sort=since":                     {250, 50, "n0/a0249"},
		"sort=nothing":                   {250, 50, "n0/a0000"},
		"kind=Package":                   {0, 0, ""},
		"namespace=n2&state=Ready&q=131": {1, 1, "n2/a0131"},
	} {
		values, err := url.ParseQuery(asked)
		if err != nil {
			t.Fatal(err)
		}
		got := x.ask(queryOf("sources", values), everything())
		first := ""
		if len(got.Rows) > 0 {
			first = got.Rows[0].Namespace + "/" + got.Rows[0].Name
		}
		if got.Found != want.found || len(got.Rows) != want.rows || first != want.first {
			t.Errorf("%s: %d found, %d shown, from %s on; want %+v", asked, got.Found, len(got.Rows), first, want)
		}
	}
}

// TestQueryIsTheURL: a link to another page of a table asks for the same table.
func TestQueryIsTheURL(t *testing.T) {
	t.Parallel()
	values := url.Values{"q": {`a&b="<`}, "state": {"Ready"}, "sort": {"since"}, "namespace": {"n"}, "kind": {"Source"}}
	asked := queryOf("sources", values)
	_, raw, _ := strings.Cut(asked.With("page", "2"), "?")
	again, err := url.ParseQuery(raw)
	if err != nil {
		t.Fatal(err)
	}
	asked.Number = 2
	if got := queryOf("sources", again); got != asked {
		t.Errorf("got %+v, want %+v", got, asked)
	}
}

// TestSummary: what needs attention comes first, the worst of it before all else.
func TestSummary(t *testing.T) {
	t.Parallel()
	got := filled(250).summarize(everything())
	if len(got.Attention) != maxAttention || got.More != 126-maxAttention || got.Attention[0].State != view.Blocked || !slices.Equal(got.Where, []string{"packages", "sources"}) {
		t.Errorf("attention: %d and %d more, on %v, first %+v", len(got.Attention), got.More, got.Where, got.Attention[0])
	}
	if got.Totals[0].All != 250 || len(got.Totals[0].Counts) != len(view.States()) || len(got.Changed) != maxChanged || got.Changed[0].Name != "a0249" {
		t.Errorf("totals %+v, changed first %+v", got.Totals[0], got.Changed[0])
	}
}

// TestSlowReadersMakeNobodyWait: news is told without anybody taking it.
func TestSlowReadersMakeNobodyWait(t *testing.T) {
	t.Parallel()
	x := filled(1)
	slow, leave := x.subscribe(x.kinds[0].is)
	defer leave()
	for range 100 {
		x.change(x.kinds[0], func(*heard) {})
		x.change(x.kinds[1], func(*heard) {})
	}
	<-slow.news
	select {
	case <-slow.news:
		t.Error("news is told twice")
	default:
	}
}
