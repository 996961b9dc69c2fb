package yamltext

// layout says what comments belong to which entry.
//
// Between two entries of a collection, comments that are indented further than the entries belong to the upper one. Of the
// others, those right above the lower one are its head, and those right below the upper one belong to that. What blank lines
// separate from both belongs to none.
type layout struct {
	src []byte
}

// measure lays out the entries of the item and of all below it. What is between behind and the first entry may be above that;
// limit is where begins what follows the item.
func (y layout) measure(it *item, behind, limit int) {
	if it.entries == nil {
		for i := range it.kids {
			y.measure(&it.kids[i], it.kids[i].start, it.kids[i].end)
		}
		return
	}
	for i := range it.entries {
		e := &it.entries[i]
		if i > 0 {
			behind = it.value(i - 1).end
		}
		y.head(e, behind, it.column, i == 0)
	}
	for i := range it.entries {
		e := &it.entries[i]
		below := limit
		if i+1 < len(it.entries) {
			below = it.entries[i+1].head
		}
		value := it.value(i)
		y.measure(value, max(e.after, e.start), below)
		e.own = lineEnd(y.src, max(value.end, e.after))
		if value.entries != nil {
			e.own = value.tail(y.src)
		}
		e.tail = y.foot(e.own, it.column, below)
	}
}

// head finds where the comments begin that stand right above the entry.
func (y layout) head(e *entry, behind, column int, first bool) {
	e.head = e.start
	if e.inner {
		return
	}
	e.head = lineStart(y.src, e.start)
	for e.head > 0 {
		line := lineStart(y.src, previousLine(y.src, e.head))
		indent, ok := isComment(y.src, line)
		if line == e.head || line <= behind && behind > 0 || !ok || !first && indent > column {
			return
		}
		e.head = line
	}
}

// foot finds where the comments end that stand right below the line that ends at the offset.
func (y layout) foot(end, column, limit int) int {
	for {
		line := end + breakWidth(y.src, end)
		indent, ok := isComment(y.src, line)
		if line == end || line >= limit || !ok || indent < column {
			return end
		}
		end = lineEnd(y.src, line)
	}
}

// previousLine is an offset inside the line before the one that begins at the offset.
func previousLine(src []byte, at int) int {
	if at > 1 && src[at-1] == '\n' && src[at-2] == '\r' {
		return at - 2
	}
	at--
	for at > 0 && breakWidth(src, at) == 0 {
		at--
	}
	return at
}
