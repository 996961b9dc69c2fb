package script

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// hostile are scripts that want more than there is, each in another way. All of them come upon a limit.
func hostile() map[string]string {
	const (
		// nest is 2^60 texts, and deep a million lists in each other.
		nest = "a = ['x']\nfor _ in range(60):\n  a = [a, a]\n"
		deep = "d = []\nfor _ in range(100000):\n  d = [d]\n"
		// pairs is a tuple of 2^60 parts, which could be a key.
		pairs = "t = (1,)\nfor _ in range(60):\n  t = (t, t)\n"
		// long is a text of a mebibyte.
		long = "s = 'x' * (1 << 20)\n"
	)
	return map[string]string{
		"loop":                   "while True:\n  pass\n",
		"recursion":              "def f():\n  return f()\nx = f()\n",
		"recursion by lambda":    "f = lambda g: g(g)\nx = f(f)\n",
		"recursion in a sort":    "def f(x):\n  return sorted([1, 2], key=f)\nf(1)\n",
		"wide frames":            "def f(n):\n  x = [" + strings.Repeat("n,", 20_000) + "f(n)]\nf(1)\n",
		"texts":                  "x = 'a' * 1000000000\n",
		"texts the other way":    "x = 1000000000 * 'a'\n",
		"texts of texts":         long + "x = [s + str(i) for i in range(100000)]\n",
		"texts that double":      "x = 'a'\nfor _ in range(60):\n  x += x\n",
		"texts in a map":         "x = {'a': 'a'}\nfor _ in range(60):\n  x['a'] += x['a']\n",
		"huge count":             "x = 'a' * (1 << 200)\n",
		"lists":                  "x = [0] * 1000000000\n",
		"tuples":                 "x = (0,) * 1000000000\n",
		"lists that double":      "x = [0]\nfor _ in range(60):\n  x += x\n",
		"lists that are added":   "x = [0]\nfor _ in range(60):\n  x = x + x\n",
		"a list of a range":      "x = list(range(1 << 40))\n",
		"a tuple of a range":     "x = tuple(range(1 << 40))\n",
		"a set of a range":       "x = set(range(1 << 40))\n",
		"a sorted range":         "x = sorted(range(1 << 40))\n",
		"a sorted range by name": "x = sorted(iterable=range(1 << 40))\n",
		"a reversed range":       "x = reversed(range(1 << 40))\n",
		"an enumerated range":    "x = enumerate(range(1 << 40))\n",
		"a zipped range":         "x = zip(range(1 << 40), range(1 << 40))\n",
		"the least of a range":   "x = min(range(1 << 40))\n",
		"the most of a range":    "x = max(range(1 << 40))\n",
		"all of a range":         "x = all(range(1, 1 << 40))\n",
		"any of a range":         "x = any(range(1 << 40)[:0:-1])\n",
		"extended by a range":    "x = []\nx.extend(range(1 << 40))\n",
		"added a range":          "x = []\nx += range(1 << 40)\n",
		"joined by a range":      "x = ''.join(range(1 << 40))\n",
		"arguments of a range":   "print(*range(1 << 40))\n",
		"a key by place":         "a = [0] * 1000\nfor _ in range(2):\n  a = [a] * 1000\nx = sorted([1, 2], lambda x: a)\n",
		"function as a value":    "x = sorted([range(1 << 40)], key=list)\n",
		"method as a value":      long + "f = ('{0}' * 100000).format\nx = sorted([s], key=f)\n",
		"what fails, far apart":  "fail(sep='x' * (1 << 20), *([0] * 600))\n",
		"getattr":                long + "x = getattr('{0}' * 100000, 'format')(s)\n",
		"slices":                 "x = [0] * 1000000\ny = [x[:] for _ in range(1000)]\n",
		"slices of texts":        long + "y = [s[::2] for _ in range(10000)]\n",
		"slices of tuples":       "x = (0,) * 1000000\ny = [x[1:] for _ in range(1000)]\n",
		"maps":                   "x = [{} for _ in range(1 << 40)]\n",
		"maps that are written":  "x = []\nwhile True:\n  x.append({1: 1})\n",
		"maps of parameters":     "def f(**k):\n  return k\nx = [f(a=1) for _ in range(1 << 40)]\n",
		"sets":                   "x = [set() for _ in range(1 << 40)]\n",
		"growing map":            "x = {}\nfor i in range(1 << 40):\n  x[i] = i\n",
		"growing set":            "x = set()\nfor i in range(1 << 40):\n  x.add(i)\n",
		"growing list":           "x = []\nfor i in range(1 << 40):\n  x.append('a' * 1000)\n",
		"inserting":              "x = []\nfor i in range(1 << 40):\n  x.insert(0, 'a' * 1000)\n",
		"unions":                 "x = set(range(100000))\ny = [x | set([i]) for i in range(10000)]\n",
		"unions of maps":         "x = {i: i for i in range(50000)}\ny = [x | {} for i in range(10000)]\n",
		"items":                  "x = {i: i for i in range(50000)}\ny = [x.items() for i in range(10000)]\n",
		"comprehensions":         "x = [[0 for _ in range(1000)] for _ in range(1 << 30)]\n",
		"functions":              "x = [lambda a=[i]: a for i in range(1 << 40)]\n",
		"replace":                long + "x = s.replace('', s)\n",
		"replace all":            long + "x = s.replace('x', s)\n",
		"join":                   long + "x = s.join(['a'] * 100000)\n",
		"join of long ones":      long + "x = ''.join([s] * 100000)\n",
		"split":                  "x = [('a ' * 1000000).split() for _ in range(100)]\n",
		"split by a word":        "x = [('ab' * 1000000).split('b') for _ in range(100)]\n",
		"lines":                  "x = [('a\\n' * 1000000).splitlines() for _ in range(100)]\n",
		"format":                 long + "x = ('{0}' * 100000).format(s)\n",
		"interpolation":          long + "x = ('%(a)s' * 100000) % {'a': s}\n",
		"upper":                  long + "x = [s.upper() for _ in range(10000)]\n",
		"integers":               "x = 3\nfor _ in range(60):\n  x *= x\n",
		"shifts":                 "x = 3\nfor _ in range(60):\n  x = x << 500\n",
		"an integer in words":    "x = int('9' * 1000000)\n",
		"str of many":            nest + "x = str(a)\n",
		"repr of many":           nest + "x = repr(a)\n",
		"print many":             nest + "print(a)\n",
		"fail many":              nest + "fail(a)\n",
		"percent many":           nest + "x = '%s' % [a]\n",
		"format many":            nest + "x = '{}'.format(a)\n",
		"compare many":           nest + "x = a == [a[0], a[1]]\n",
		"many in many":           nest + "x = a in [a]\n",
		"index of many":          nest + "x = [a].index(list(a))\n",
		"sort many":              nest + "x = sorted([a, list(a)])\n",
		"sort by many":           nest + "x = sorted([1, 2], key=lambda _: list(a))\n",
		"many at the end":        nest + "ctx.resource_list['items'].append({'a': a})\n",
		"many results":           nest + "ctx.resource_list['results'] = [{'a': a}]\n",
		"str of deep ones":       deep + "x = str(d)\n",
		"compare deep ones":      deep + "x = d == [d]\n",
		"deep at the end":        deep + "ctx.resource_list['items'].append({'a': d})\n",
		"in itself":              "x = {}\nx['a'] = x\nctx.resource_list['items'].append(x)\n",
		"a list of itself":       "ctx.resource_list['items'].append(ctx.resource_list['items'])\n",
		"a key of many":          pairs + "x = {}\nx[t] = 1\n",
		"a key that is read":     pairs + "x = {}\ny = x[t]\n",
		"a key in a map":         pairs + "x = {t: 1}\n",
		"a key in braces":        pairs + "x = {k: 1 for k in [t]}\n",
		"a key that is asked":    pairs + "x = t in {}\n",
		"a key that is got":      pairs + "x = {}.get(t)\n",
		"a key by default":       pairs + "x = {}.setdefault(t, 1)\n",
		"a key by update":        pairs + "x = {}\nx.update([(t, 1)])\n",
		"a key of dict":          pairs + "x = dict([(t, 1)])\n",
		"a key of a set":         pairs + "x = set([t])\n",
		"a key that is added":    pairs + "x = set()\nx.add(t)\n",
		"a key in a union":       pairs + "x = set().union([t])\n",
		"a key that grows":       pairs + "x = {}\nx[t] += 1\n",
		"a key as a target":      pairs + "x = {}\n(x[t], y) = 1, 2\n",
		"a key of a loop":        pairs + "x = {}\nfor x[t] in [1]:\n  pass\n",
		"a long source":          "x = 1\n" + strings.Repeat("#", maxSource),
		"work of many looks":     "x = [str(i) for i in range(10000)]\nwhile True:\n  x == list(x)\n",
	}
}

// TestHostileScriptsComeUponALimit holds that none of them takes more memory, or time, than its limits are worth. It is alone in
// its process as long as it runs, as it measures the whole of it.
func TestHostileScriptsComeUponALimit(t *testing.T) { //nolint:paralleltest // It measures the memory of the process.
	const most = 400 << 20
	for name, source := range hostile() {
		t.Run(name, func(t *testing.T) {
			runtime.GC()
			stop, peak := make(chan struct{}), make(chan uint64)
			go watch(stop, peak)
			begun := time.Now()
			_, err := Run(t.Context(), Script{Source: source})
			took := time.Since(begun)
			close(stop)
			if !errors.Is(err, ErrLimit) {
				t.Errorf("want a limit, got %v", err)
			}
			if used := <-peak; used > most {
				t.Errorf("it took %d MiB", used>>20)
			} else {
				t.Logf("%d MiB, %v: %v", used>>20, took.Round(time.Millisecond), err)
			}
			if took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// watch tells the most memory that the heap had until it is stopped.
func watch(stop <-chan struct{}, peak chan<- uint64) {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	var most uint64
	for {
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		most = max(most, now.HeapAlloc)
		select {
		case <-stop:
			peak <- most
			return
		case <-ticker.C:
		}
	}
}

func TestAScriptEndsWithItsContext(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := Run(ctx, Script{Source: "while True:\n  pass\n"}); !errors.Is(err, gone) {
		t.Error(err)
	}
}

// TestDeepSources do not break the program, whatever they come to.
func TestDeepSources(t *testing.T) {
	t.Parallel()
	for _, open := range []string{"(", "[", "{1:", "-", "not ", "lambda: ", "x if x else ", "f(", "[x for x in "} {
		_, err := Run(t.Context(), Script{Source: "x = " + strings.Repeat(open, maxSource/len(open)-10) + "1"})
		if err == nil {
			t.Errorf("%q: there is no error", open)
		}
	}
	if _, err := Run(t.Context(), Script{Source: "x = '' " + strings.Repeat(".a", 30_000)}); err == nil {
		t.Error("there is no error")
	}
}

// FuzzRun holds that no script breaks the program, and that the same one makes the same twice.
func FuzzRun(f *testing.F) {
	for _, name := range []string{"recursion", "lists that double", "format many", "a key in a map", "in itself", "a reversed range"} {
		f.Add(hostile()[name])
	}
	f.Add("ctx.resource_list['items'][0]['data']['a'] += 'x'\nprint([x for x in range(3)])")
	f.Fuzz(func(t *testing.T, source string) {
		item := yaml.MustParse("apiVersion: v1\nkind: ConfigMap\ndata: {a: b, c: [1, 2.5, null, true]}\n").YNode()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		once, err := Run(ctx, Script{Source: source, Items: []*yaml.Node{item}})
		twice, errTwice := Run(ctx, Script{Source: source, Items: []*yaml.Node{item}})
		if (err == nil) != (errTwice == nil) || len(once.Items) != len(twice.Items) {
			t.Errorf("%v, %v", err, errTwice)
		}
	})
}
