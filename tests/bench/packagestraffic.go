package main

import (
	"strings"

	"sluice.dev/sluice/tests/upstream"
)

// traffic is what the Git server was asked, by repository and kind.
type traffic map[string]map[upstream.Kind]int

func (r *packagesRun) traffic() traffic {
	t := traffic{}
	for _, request := range r.host.http.Requests() {
		name, _, _ := strings.Cut(strings.TrimPrefix(request.URI, "/"), "/")
		if t[name] == nil {
			t[name] = map[upstream.Kind]int{}
		}
		t[name][request.Kind]++
	}
	return t
}

// most is what one repository was asked most since then.
func (t traffic) most(before traffic, kind upstream.Kind) (most int) {
	for name := range t {
		most = max(most, t[name][kind]-before[name][kind])
	}
	return most
}

// sum is what all were asked since then.
func (t traffic) sum(before traffic, kind upstream.Kind) (sum int) {
	for name := range t {
		sum += t[name][kind] - before[name][kind]
	}
	return sum
}
