package git

import (
	"hash/fnv"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

const (
	// maxWants is how many commits are fetched together.
	maxWants = 1 << 16
	// maxOthers is how many are remembered beside those that were fetched together last: others may fetch from the same
	// repository, and a ref that is gone may come back.
	maxOthers = 1 << 14
	maxCrowd  = maxWants + maxOthers
	// fewHaves is how many commits a server is told of at least, if they are there, moreHaves how many more for each one that is
	// wanted, and maxHaves how many at most: each takes about a hundred bytes to tell.
	fewHaves  = 16
	moreHaves = 2
	maxHaves  = 1 << 10
)

// member is a commit with all its files, and the ref that it was found under. The same commit may be there several times.
type member struct {
	commit plumbing.Hash
	ref    uint64 // names the ref, see refID
}

// memberRecord is what a member takes in the index file.
const memberRecord = len(plumbing.ZeroHash) + 8

// refID stands for the name of a ref; zero for none. Where two have the same one, a server is told of another commit.
func refID(name string) uint64 {
	if name == "" {
		return 0
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name)) // A hash never fails to write.
	return sum.Sum64()
}

// with are the commits that are remembered once another was fetched.
func (k *kept) with(t tip) remembered {
	if k == nil {
		return remembered{tips: []tip{t}}
	}
	others := slices.DeleteFunc(slices.Clone(k.tips), func(known tip) bool { return known.commit == t.commit })
	return remembered{append(others[max(0, len(others)+1-maxTips):], t), k.crowd}
}

// joined are the commits that are remembered once others were fetched together, the first of which are the newest. What else
// was found under the refs of these is not there any more.
func (k *kept) joined(fresh []member) remembered {
	fresh = slices.Clone(fresh[:min(len(fresh), maxWants)]) // More may have been pushed.
	slices.Reverse(fresh)
	if k == nil {
		return remembered{crowd: fresh}
	}
	moved := map[uint64]bool{}
	again := map[member]bool{}
	for _, m := range fresh {
		moved[m.ref], again[m] = m.ref != 0, true
	}
	others := slices.DeleteFunc(slices.Clone(k.crowd), func(m member) bool { return moved[m.ref] || again[m] })
	return remembered{k.tips, append(others[max(0, len(others)-maxOthers):], fresh...)}
}

// knows tells whether all members are remembered.
func (k *kept) knows(fresh []member) bool {
	if k == nil {
		return false
	}
	known := make(map[member]bool, len(k.crowd))
	for _, m := range k.crowd {
		known[m] = true
	}
	return !slices.ContainsFunc(fresh, func(m member) bool { return !known[m] })
}

// whole are all commits, each once.
func (r remembered) whole() []tip {
	all := slices.Clone(r.tips)
	seen := map[plumbing.Hash]bool{}
	for _, t := range r.tips {
		seen[t.commit] = !t.bare
	}
	for _, m := range r.crowd {
		if !seen[m.commit] {
			seen[m.commit] = true
			all = append(all, tip{m.commit, false})
		}
	}
	return all
}

// complete are the commits that are there with all their files.
func (k *kept) complete() map[plumbing.Hash]bool {
	found := map[plumbing.Hash]bool{}
	if k != nil {
		for _, t := range k.whole() {
			if !t.bare {
				found[t.commit] = true
			}
		}
	}
	return found
}

// near are the ids of those commits that a server is told of when others are wanted: what was found under the same refs before,
// the first of the present ones, and the newest.
func (k *kept) near(missing []Want, present []plumbing.Hash) (ids []string) {
	if k == nil {
		return nil
	}
	most := min(fewHaves+moreHaves*len(missing), maxHaves)
	told := map[plumbing.Hash]bool{}
	tell := func(commit plumbing.Hash, upTo int) {
		if !told[commit] && len(ids) < upTo {
			told[commit] = true
			ids = append(ids, commit.String())
		}
	}
	for _, commit := range present {
		tell(commit, fewHaves)
	}
	refs := map[uint64]bool{}
	for _, want := range missing {
		refs[refID(want.Ref)] = want.Ref != ""
	}
	for _, m := range slices.Backward(k.crowd) {
		if refs[m.ref] {
			tell(m.commit, most)
		}
	}
	for _, t := range slices.Backward(k.whole()) {
		if !t.bare {
			tell(t.commit, most)
		}
	}
	return ids
}
