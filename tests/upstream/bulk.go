package upstream

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// Bulk puts a commit on top of the branch that adds a generated tree of n files with about the given number of
// bytes in all, then packs the repository as a server would. The tree looks like a configuration repository: text
// in YAML's shape, mostly a few KB and some large files, in folders by team and application. It compresses to
// about a third, and every fourth file is its neighbour with some values changed, as those of two environments are.
// The same numbers give the same commit.
func (r *Repository) Bulk(branch string, n int, size int64) (string, error) {
	if n <= 0 || size < int64(n) {
		return "", fmt.Errorf("bulk of %d files and %d bytes: want at least one file and a byte a file", n, size)
	}
	commit, err := r.importCommit(branch, fmt.Sprintf("add %d generated files", n), true, func(w *bufio.Writer) error {
		g := newGenerator(uint64(n), uint64(size))
		text := ""
		for i, length := range g.sizes(n, size) {
			if isVariant(i) {
				text = g.variant(text)
			} else {
				text = g.manifest(i, length)
			}
			writeFile(w, BulkPath(i), File{Content: text})
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	_, err = r.Raw("repack", "-a", "-d", "-q")
	return commit, err
}

// BulkPath is the path of the file with that index, counted from zero, in the tree that Bulk makes. An
// application has four.
func BulkPath(i int) string {
	app := i / 4
	return fmt.Sprintf("teams/team-%02d/apps/app-%03d/manifest-%02d.yaml", app%17, app/17%83, app/(17*83)*4+i%4)
}

func isVariant(i int) bool { return i%4 == 3 }

// generator makes text that repeats itself about as much as configuration does.
type generator struct {
	*rand.Rand
	words []string
}

func newGenerator(a, b uint64) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(a, b))}
	for range 3000 {
		word := make([]byte, 3+g.IntN(8))
		for i := range word {
			word[i] = byte('a' + g.IntN(26))
		}
		g.words = append(g.words, string(word))
	}
	return g
}

// sizes shares out the bytes with a long tail: the median is less than half the mean.
func (g *generator) sizes(n int, total int64) []int64 {
	weights := make([]float64, n)
	var sum float64
	for i := range weights {
		weights[i] = math.Exp(1.3 * g.NormFloat64())
		if isVariant(i) {
			weights[i] = weights[i-1]
		}
		sum += weights[i]
	}
	shares := make([]int64, n)
	for i, weight := range weights {
		shares[i] = max(1, int64(weight/sum*float64(total)))
	}
	return shares
}

// manifest is text of exactly the given length; it ends with a newline.
func (g *generator) manifest(i int, length int64) string {
	var b strings.Builder
	b.Grow(int(length) + 512)
	fmt.Fprintf(&b, "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: app-%d\nspec:\n  replicas: %d\n", i, 1+g.IntN(5))
	var noise [33]byte
	for int64(b.Len()) < length {
		indent := strings.Repeat("  ", 1+g.IntN(5))
		switch kind := g.IntN(24); {
		case kind == 0:
			for j := range noise {
				noise[j] = byte(g.Uint32())
			}
			fmt.Fprintf(&b, "%s%s: %s\n", indent, g.word(), base64.StdEncoding.EncodeToString(noise[:]))
		case kind < 8:
			fmt.Fprintf(&b, "%s%s: %d\n", indent, g.word(), g.IntN(10000))
		default:
			fmt.Fprintf(&b, "%s- %s: %s", indent, g.word(), g.word())
			for range g.IntN(12) {
				b.WriteByte(' ')
				b.WriteString(g.word())
			}
			b.WriteByte('\n')
		}
	}
	return b.String()[:length-1] + "\n"
}

// variant is the text with a few of its digits changed.
func (g *generator) variant(text string) string {
	changed := []byte(text)
	for range 1 + len(changed)/2048 {
		if at := g.IntN(len(changed)); changed[at] >= '0' && changed[at] <= '9' {
			changed[at] = byte('0' + g.IntN(10))
		}
	}
	return string(changed)
}

// word prefers some words to others, as people do.
func (g *generator) word() string {
	return g.words[int(float64(len(g.words))*math.Pow(g.Float64(), 3))]
}
