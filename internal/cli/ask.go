package cli

import (
	"slices"
	"strings"

	"sluice.dev/sluice/internal/catalog"
)

// wanted is a kind, and the names that are asked for; none are all.
type wanted struct {
	kind  kind
	names []string
}

// parse reads the arguments: a group of kinds, KIND and names, KIND/NAME, or names of installations.
func parse(args []string) ([]wanted, error) {
	all := kinds()
	if len(args) == 0 {
		return []wanted{{kind: all[0]}}, nil
	}
	switch args[0] {
	case "all", "sources":
		if len(args) > 1 {
			return nil, usage(args[0] + " takes no names")
		}
		var asked []wanted
		for _, k := range all {
			if args[0] == "all" || k.isSource {
				asked = append(asked, wanted{kind: k})
			}
		}
		return asked, nil
	}
	if strings.Contains(args[0], "/") {
		return parsePairs(args)
	}
	if at := slices.IndexFunc(args, func(arg string) bool { return strings.Contains(arg, "/") }); at >= 0 {
		return nil, usage(args[at] + " stands beside names without a kind")
	}
	if k, known := kindOf(args[0]); known {
		return []wanted{{k, args[1:]}}, nil
	}
	return []wanted{{all[0], args}}, nil
}

// parsePairs reads KIND/NAME.
func parsePairs(args []string) ([]wanted, error) {
	var asked []wanted
	for _, arg := range args {
		word, name, paired := strings.Cut(arg, "/")
		k, known := kindOf(word)
		switch {
		case !paired || name == "":
			return nil, usage(arg + " is not KIND/NAME")
		case !known:
			return nil, usage("there is no kind "+word, similar(word)...)
		}
		at := slices.IndexFunc(asked, func(w wanted) bool { return w.kind.resource == k.resource })
		if at < 0 {
			asked, at = append(asked, wanted{kind: k}), len(asked)
		}
		asked[at].names = append(asked[at].names, name)
	}
	return asked, nil
}

// similar names the kinds that a word may have been meant for.
func similar(word string) []string {
	if near := nearKinds(word); len(near) > 0 {
		return []string{"similar: " + list(near)}
	}
	var all []string
	for _, k := range kinds() {
		all = append(all, k.resource)
	}
	return []string{"the kinds are " + list(all)}
}

// nearKinds are the names of kinds that a word looks like.
func nearKinds(word string) []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.names()...)
	}
	return catalog.Near(strings.ToLower(word), names)
}
