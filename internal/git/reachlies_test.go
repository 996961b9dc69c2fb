package git

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"sluice.dev/sluice/internal/fair"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/transport"
)

// liar is a server that gives the same pack to everybody; without one it sends noise in a pack that never ends.
func liar(t *testing.T, pack []byte) Remote {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", uploadPack.mediaType("advertisement"))
			_, _ = io.WriteString(w, "000eversion 2\n0019fetch=shallow filter\n0000")
			return
		}
		w.Header().Set("Content-Type", uploadPack.mediaType("result"))
		_, _ = io.WriteString(w, "000dpackfile\n")
		head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), 1000)
		for chunk := append(head, make([]byte, 60_000)...); pack == nil; {
			if _, err := fmt.Fprintf(w, "%04x\x01%s", len(chunk)+5, chunk); err != nil {
				return
			}
		}
		for chunk := range slices.Chunk(pack, 60_000) {
			_, _ = fmt.Fprintf(w, "%04x\x01%s", len(chunk)+5, chunk)
		}
		_, _ = io.WriteString(w, "0000")
	}))
	t.Cleanup(server.Close)
	return Remote{URL: server.URL + "/app"}
}

func commitOf(parents ...plumbing.Hash) string {
	var text strings.Builder
	fmt.Fprintf(&text, "tree %s\n", plumbing.ZeroHash)
	for _, parent := range parents {
		fmt.Fprintf(&text, "parent %s\n", parent)
	}
	text.WriteString("author A <a@x> 1 +0000\ncommitter A <a@x> 1 +0000\n\nx")
	return text.String()
}

func hashOf(commit string) plumbing.Hash {
	return plumbing.ComputeHash(plumbing.CommitObject, []byte(commit))
}

func TestNobodyIsBelievedAboutParents(t *testing.T) {
	t.Parallel()
	wanted := hashOf(commitOf())
	honest, root := commitOf(wanted), commitOf(plumbing.ZeroHash)
	late := strings.Replace(commitOf(plumbing.ZeroHash), "\nauthor", fmt.Sprintf("\nauthor B <b@x> 1 +0000\nparent %s\nauthor", wanted), 1)
	cases := map[string]struct {
		reason  string
		tip     plumbing.Hash
		commits []string
		want    error
	}{
		"honest":  {"The tip says whose child it is.", hashOf(honest), []string{honest}, nil},
		"another": {"A commit with the right parent is not the tip.", hashOf(root), []string{honest}, ErrRefNotFound},
		"beside":  {"Nor does it help beside the tip.", hashOf(root), []string{root, honest}, ErrRefNotFound},
		"late":    {"Git knows no parents behind the author.", hashOf(late), []string{late}, ErrRefNotFound},
		"itself":  {"That the commit is there says nothing.", hashOf(root), []string{root, commitOf()}, ErrRefNotFound},
		"nothing": {"Nor does an empty answer.", hashOf(honest), nil, ErrRefNotFound},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &packWriter{t: t}
			for _, commit := range c.commits {
				w.add(plumbing.CommitObject, len(commit), nil, []byte(commit))
			}
			remote := liar(t, w.bytes())
			err := reachingClient(t, Options{}).Reaches(t.Context(), remote, Want{Hash: c.tip.String(), Ref: "refs/heads/main"}, wanted.String())
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("%s want %v, got %v", c.reason, c.want, err)
			}
		})
	}
}

// TestParentsAreDrawn: a commit may name as many as it likes, and nobody needs to have them.
func TestParentsAreDrawn(t *testing.T) {
	t.Parallel()
	w := &packWriter{t: t}
	var tip plumbing.Hash
	for i := range uint32(8) {
		parents := make([]plumbing.Hash, 20_000)
		for j := range parents {
			binary.BigEndian.PutUint32(parents[j][:], i)
			binary.BigEndian.PutUint32(parents[j][4:], uint32(j))
		}
		parents[0] = tip
		commit := commitOf(parents...)
		tip = hashOf(commit)
		w.add(plumbing.CommitObject, len(commit), nil, []byte(commit))
	}
	remote, wanted := liar(t, w.bytes()), strings.Repeat("2", 40)
	client := reachingClient(t, Options{})
	err := memory.New(8<<20, "").Do(t.Context(), fair.Wish{}, nil, func(ctx context.Context) error {
		return client.Reaches(ctx, remote, Want{Hash: tip.String(), Ref: "refs/heads/main"}, wanted)
	})
	if !errors.Is(err, memory.ErrBudget) {
		t.Errorf("got %v", err)
	}
}

func reachingClient(t *testing.T, options Options) *Client {
	t.Helper()
	options.Transport, options.TempDir = transport.New(transport.Options{AllowLoopback: true}), t.TempDir()
	client, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestHistoriesWithoutEndMeetALimit(t *testing.T) {
	t.Parallel()
	tip, wanted := strings.Repeat("1", 40), strings.Repeat("2", 40)
	const limit = 4 << 20
	remote := liar(t, nil)
	var received int64
	client := reachingClient(t, Options{MaxPackBytes: limit, Observe: func(bytes int64) { received = bytes }})
	err := client.Reaches(t.Context(), remote, Want{Hash: tip, Ref: "refs/heads/main"}, wanted)
	if !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "cannot tell") {
		t.Errorf("got %v", err)
	}
	if received > 2*limit {
		t.Errorf("%d bytes were taken", received)
	}
	// A pack that announces more objects than a step may have is not even received.
	crowd := append(binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), stepCommits+1), bytes.Repeat([]byte{0}, 40_000)...)
	remote = liar(t, crowd)
	if err := client.Reaches(t.Context(), remote, Want{Hash: tip, Ref: "refs/heads/main"}, wanted); !errors.Is(err, ErrLimit) {
		t.Errorf("got %v", err)
	}
}
