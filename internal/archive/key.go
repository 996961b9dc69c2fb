package archive

import (
	"crypto/sha256"
	"encoding/binary"

	"sluice.dev/sluice/internal/tree"
)

// salt is about all that shapes a part beside its entries and their place: the format, the rules, and the limits that the
// entries were held against one by one.
func salt(rules *Rules, limits Limits) key {
	of := append([]byte(FormatVersion), 0)
	of = binary.BigEndian.AppendUint64(of, uint64(limits.MaxDepth)) //nolint:gosec // It is positive.
	of = binary.BigEndian.AppendUint64(of, uint64(limits.MaxPath))  //nolint:gosec // It is positive.
	if rules != nil {
		of = append(of, rules.print...)
	}
	return digest(of)
}

// keyOf names entries of a kind at a place: those of the same name make the same bytes. It reports false where one has no ID.
func (w *writer) keyOf(kind byte, dir string, entries []*tree.Node) (key, bool) {
	of := append(append(w.scratch[:0], w.salt...), kind)
	defer func() { w.scratch = of }()
	of = appendText(of, dir)
	for _, n := range entries {
		id := n.ID
		switch {
		case n.Mode.IsDir():
			facts, err := n.Facts()
			if err != nil {
				return "", false // Whoever writes it will say so.
			}
			if of = append(of, 'd'); kind == 'p' && isApart(n, facts) {
				of[len(of)-1], id = 'h', "-"
			}
		case !n.Mode.IsRegular():
			continue
		case normalMode(n.Mode) == executableMode:
			of = append(of, 'x')
		default:
			of = append(of, 'f')
		}
		if id == "" {
			return "", false
		}
		of = appendText(appendText(of, n.Name), id)
	}
	return digest(of), true
}

func digest(of []byte) key {
	sum := sha256.Sum256(of)
	return key(sum[:])
}

func appendText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}
