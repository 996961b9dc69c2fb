package main

import (
	"maps"
	"strings"

	"sluice.dev/sluice/tests/testenv"
)

// mark is a place in the audit log: so many requests of a user came before it.
type mark struct {
	user string
	seen int
}

func (f *fleet) mark(user string) (mark, error) {
	requests, err := f.env.Requests(user)
	return mark{user, len(requests)}, err
}

// since sorts the requests that came after the mark.
func (f *fleet) since(m mark) (tally, error) {
	requests, err := f.env.Requests(m.user)
	if err != nil {
		return tally{}, err
	}
	return sorted(requests[m.seen:]), nil
}

// tally is what was asked of the API server.
type tally struct {
	// calls, lists and watches are those for members: made as a ServiceAccount, or by kubectl for what it applies.
	calls, lists, watches int
	// own are all others, by verb and resource.
	own map[string]int
}

// sorted sorts requests by whom and what they are for. A watch counts when it opens.
func sorted(requests []testenv.Request) tally {
	t := tally{own: map[string]int{}}
	for _, r := range requests {
		watched := r.Verb == "watch"
		if watched != (r.Stage == "ResponseStarted") {
			continue
		}
		member := r.Impersonated() != "" || r.User.Name == kubectlUser && r.Object.Resource != ""
		switch {
		case member && watched:
			t.watches++
		case member && r.Verb == "list":
			t.lists++
		case member:
			t.calls++
		default:
			t.own[strings.Join([]string{r.Verb, purpose(r)}, " ")]++
		}
	}
	return t
}

// plus adds up two tallies.
func (t tally) plus(more tally) tally {
	sum := tally{calls: t.calls + more.calls, lists: t.lists + more.lists, watches: t.watches + more.watches, own: maps.Clone(more.own)}
	for key, n := range t.own {
		sum.own[key] += n
	}
	return sum
}

// purpose is what a request is about.
func purpose(r testenv.Request) string {
	switch {
	case r.Object.Resource == "":
		return "discovery" // What kinds there are.
	case r.Object.Subresource != "":
		return r.Object.Resource + "/" + r.Object.Subresource
	default:
		return r.Object.Resource
	}
}

// bookkeeping is how many requests were about installations and their inventories.
func (t tally) bookkeeping() int {
	count := 0
	for key, n := range t.own {
		_, resource, _ := strings.Cut(key, " ")
		resource, _, _ = strings.Cut(resource, "/")
		if resource == "moduleinstallations" || resource == "inventories" {
			count += n
		}
	}
	return count
}

// others is how many requests were neither for members nor bookkeeping: events, the catalogue, and its sources.
func (t tally) others() int {
	count := -t.bookkeeping()
	for _, n := range t.own {
		count += n
	}
	return count
}

// all is how many requests there were.
func (t tally) all() int { return t.calls + t.lists + t.watches + t.bookkeeping() + t.others() }
