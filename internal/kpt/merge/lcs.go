package merge

import "slices"

// maxTable bounds the table that common finds the longest sequence with.
const maxTable = 1 << 20

// pair are places in two sequences that say the same.
type pair struct{ a, b int }

// common is the longest sequence that both have in common, as pairs in rising order. In large sequences it is one that is long,
// found by what is there once on both sides.
func common(a, b []int) []pair {
	start := 0
	pairs := []pair{}
	for start < len(a) && start < len(b) && a[start] == b[start] {
		pairs = append(pairs, pair{start, start})
		start++
	}
	endA, endB := len(a), len(b)
	for endA > start && endB > start && a[endA-1] == b[endB-1] {
		endA--
		endB--
	}
	middleA, middleB := a[start:endA], b[start:endB]
	var middle []pair
	if len(middleA)*len(middleB) > maxTable {
		middle = anchored(middleA, middleB)
	} else {
		middle = longest(len(middleA), len(middleB), func(i, j int) bool { return middleA[i] == middleB[j] })
	}
	for _, found := range middle {
		pairs = append(pairs, pair{found.a + start, found.b + start})
	}
	for ; endA < len(a); endA++ {
		pairs = append(pairs, pair{endA, endB})
		endB++
	}
	return pairs
}

// longest fills a table of the lengths that remain from each pair of places, in sequences of so many places.
func longest(countA, countB int, same func(a, b int) bool) []pair {
	width := countB + 1
	lengths := make([]int32, (countA+1)*width)
	for i := countA - 1; i >= 0; i-- {
		for j := countB - 1; j >= 0; j-- {
			at := i*width + j
			lengths[at] = max(lengths[at+width], lengths[at+1])
			if next := lengths[at+width+1] + 1; next > lengths[at] && same(i, j) {
				lengths[at] = next
			}
		}
	}
	pairs := []pair{}
	for i, j := 0, 0; i < countA && j < countB; {
		at := i*width + j
		switch {
		case lengths[at] == lengths[at+width+1]+1 && same(i, j):
			pairs = append(pairs, pair{i, j})
			i++
			j++
		case lengths[at+width] >= lengths[at+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}

// anchored takes what is there once in both as anchors, and looks between them.
func anchored(a, b []int) []pair {
	anchors := rising(once(a, b))
	pairs := []pair{}
	if len(anchors) == 0 {
		return pairs // Nothing helps to tell what became of what.
	}
	startA, startB := 0, 0
	for _, anchor := range append(anchors, pair{len(a), len(b)}) {
		for _, found := range common(a[startA:anchor.a], b[startB:anchor.b]) {
			pairs = append(pairs, pair{found.a + startA, found.b + startB})
		}
		if anchor.a < len(a) {
			pairs = append(pairs, anchor)
		}
		startA, startB = anchor.a+1, anchor.b+1
	}
	return pairs
}

// once are the places of what each of both has exactly once, in a's order.
func once(a, b []int) []pair {
	type places struct{ inA, inB, countA, countB int }
	found := map[int]*places{}
	for i, says := range a {
		if found[says] == nil {
			found[says] = &places{}
		}
		found[says].inA, found[says].countA = i, found[says].countA+1
	}
	for j, says := range b {
		if at := found[says]; at != nil {
			at.inB, at.countB = j, at.countB+1
		}
	}
	pairs := []pair{}
	for _, says := range a {
		if at := found[says]; at.countA == 1 && at.countB == 1 {
			pairs = append(pairs, pair{at.inA, at.inB})
		}
	}
	return pairs
}

// rising is the longest part of the pairs, which rise in a, that rises in b as well.
func rising(pairs []pair) []pair {
	tails, before := []int{}, make([]int, len(pairs))
	for i, one := range pairs {
		at, _ := slices.BinarySearchFunc(tails, one.b, func(tail, b int) int { return pairs[tail].b - b })
		before[i] = -1
		if at > 0 {
			before[i] = tails[at-1]
		}
		if at == len(tails) {
			tails = append(tails, i)
		} else {
			tails[at] = i
		}
	}
	found := []pair{}
	if len(tails) == 0 {
		return found
	}
	for i := tails[len(tails)-1]; i >= 0; i = before[i] {
		found = append(found, pairs[i])
	}
	slices.Reverse(found)
	return found
}
