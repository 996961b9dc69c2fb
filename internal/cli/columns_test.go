package cli_test

import (
	"strings"
	"testing"

	"golang.org/x/text/width"
)

// column is where a word stands on a terminal; -1 for nowhere.
func column(line, word string) int {
	before, _, found := strings.Cut(line, word)
	if !found {
		return -1
	}
	at := 0
	for _, r := range before {
		switch width.LookupRune(r).Kind() {
		case width.EastAsianWide, width.EastAsianFullwidth:
			at += 2
		default:
			at++
		}
		if r == '\u0301' {
			at--
		}
	}
	return at
}

// TestColumnsStandBelowEachOther: whatever is in the cells, and however many of them a row has.
func TestColumnsStandBelowEachOther(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	namespace := env.NewNamespace(t)
	for name, revision := range map[string]string{"a": "main", "b": "版本一二三四五六七八", "c": "e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301"} {
		store(t, namespace, "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: "+name+"}\nspec: {url: 'https://example.com/repo', interval: 1m}\n"+
			"status: {artifact: {path: a, url: 'http://a', revision: '"+revision+"', lastUpdateTime: '2020-01-01T00:00:00Z', digest: 'sha256:"+strings.Repeat("0", 64)+"'}, conditions: "+
			condition("True", "Succeeded", "stored")+"}")
	}
	store(t, namespace, installation("a", "", "{conditions: "+condition("True", "Installed", "MESSAGE of a")+"}"))
	store(t, namespace, installation("b", ", management: Paused", "{}"))
	store(t, namespace, installation("c", "", "{conditions: "+condition("Unknown", "Progressing", "MESSAGE of c")+"}"))
	for _, args := range [][]string{{"gitrepo"}, {"mi"}} {
		lines := strings.Split(strings.TrimSuffix(run(t, env.Kubeconfig, append([]string{"get", "-n", namespace}, args...)...).out, "\n"), "\n")
		if len(lines) != 4 {
			t.Fatalf("%q", lines)
		}
		state, message := column(lines[0], "STATE"), column(lines[0], "MESSAGE")
		for _, line := range lines[1:] {
			for _, word := range []string{"✔", "◐", "Paused"} {
				if at := column(line, word); at >= 0 && at != state {
					t.Errorf("%s is in column %d, not %d:\n%s", word, at, state, strings.Join(lines, "\n"))
				}
			}
			for _, word := range []string{"MESSAGE", "stored"} {
				if at := column(line, word); at >= 0 && at != message {
					t.Errorf("%s is in column %d, not %d:\n%s", word, at, message, strings.Join(lines, "\n"))
				}
			}
		}
	}
}
