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
// bytes in all, then packs the repository as a server would. The tree looks like a configuration repository:
// YAML of mostly a few KB and some large files, in folders by team and application, about a third
// incompressible. The same numbers give the same commit.
func (r *Repository) Bulk(branch string, n int, size int64) (string, error) {
	if n <= 0 || size < int64(n) {
		return "", fmt.Errorf("bulk of %d files and %d bytes: want at least one file and a byte a file", n, size)
	}
	commit, err := r.importCommit(branch, fmt.Sprintf("add %d generated files", n), true, func(w *bufio.Writer) error {
		random := rand.New(rand.NewPCG(uint64(n), uint64(size)))
		for i, length := range sizes(random, n, size) {
			writeFile(w, BulkPath(i), File{Content: manifest(random, i, length)})
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	_, err = r.Raw("repack", "-a", "-d", "-q", "--window=4")
	return commit, err
}

// BulkPath is the path of the file with that index, counted from zero, in the tree that Bulk makes.
func BulkPath(i int) string {
	return fmt.Sprintf("teams/team-%02d/apps/app-%03d/manifest-%02d.yaml", i%17, i/17%83, i/(17*83))
}

// sizes shares out the bytes over n files with a long tail: the median is a few KB where the mean is ten or more.
func sizes(random *rand.Rand, n int, total int64) []int64 {
	weights := make([]float64, n)
	var sum float64
	for i := range weights {
		weights[i] = math.Exp(1.3 * random.NormFloat64())
		sum += weights[i]
	}
	shares := make([]int64, n)
	for i, weight := range weights {
		shares[i] = max(1, int64(weight/sum*float64(total)))
	}
	return shares
}

const manifestHead = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: app-%[1]d
  namespace: team-%[2]d
  labels:
    app.kubernetes.io/name: app-%[1]d
    app.kubernetes.io/part-of: team-%[2]d
spec:
  replicas: %[3]d
  selector:
    matchLabels:
      app.kubernetes.io/name: app-%[1]d
  template:
    spec:
      containers:
        - name: main
          image: registry.example/team-%[2]d/app-%[1]d@sha256:%016[4]x%016[5]x%016[4]x%016[5]x
          env:
`

// manifest is YAML of exactly the given length.
func manifest(random *rand.Rand, i int, length int64) string {
	var b strings.Builder
	b.Grow(int(length) + 256)
	fmt.Fprintf(&b, manifestHead, i, i%17, 1+random.IntN(5), random.Uint64(), random.Uint64())
	var noise [36]byte
	for int64(b.Len()) < length {
		number := random.Uint32()
		fmt.Fprintf(&b, "            - name: SETTING_%04d\n              value: \"%d\"\n", number%10000, number>>16)
		if number%3 == 0 {
			for j := range noise {
				noise[j] = byte(random.Uint32())
			}
			fmt.Fprintf(&b, "            - name: TOKEN_%04d\n              value: %s\n",
				number>>4%10000, base64.StdEncoding.EncodeToString(noise[:]))
		}
	}
	return b.String()[:length-1] + "\n"
}
