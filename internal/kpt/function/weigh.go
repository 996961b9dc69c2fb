package function

import "sluice.dev/sluice/internal/kpt"

// weigh counts all bytes of the package, and how many values its YAML can have at most.
func weigh(p kpt.Package) (total, nodes int64) {
	for name, file := range p {
		total += int64(len(name) + len(file.Content))
		if file.Mode.Type() == 0 && kpt.HoldsYAML(name) {
			nodes += values(file.Content)
		}
	}
	return total, nodes
}

// values is how many values the text can have at most. There is no value without a mark before or behind it, and every mark
// makes two at most: a key and what it stands for. Marks in texts that are values themselves are counted as well.
func values(text []byte) int64 {
	marks := int64(1)
	for i, c := range text {
		switch c {
		case ',', '[', '{':
			marks++
		case ':', '-', '?':
			if i+1 == len(text) || text[i+1] <= ' ' {
				marks++
			}
		}
	}
	return 2 * marks
}
