package git_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/upstream"
)

const canary = "s3cr3t-canary"

// signed is a remote with a credential that no error may show.
func signed(url string) git.Remote {
	return git.Remote{URL: url, Credential: credential.Git{Username: "user", Password: credential.NewSecret(canary)}}
}

func checkError(t *testing.T, name string, err, want error) {
	t.Helper()
	if err == nil || want != nil && !errors.Is(err, want) {
		t.Errorf("%s: want %v, got %v", name, want, err)
	}
	if err != nil && (strings.Contains(err.Error(), canary) || strings.ContainsAny(err.Error(), "\n\x00\x1b")) {
		t.Errorf("%s: the error is not clean: %q", name, err)
	}
}

func TestFaultsHaveNames(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	hash := repository.Commit("main", "m", upstream.Files{"noise": {Content: noise(20_000)}, "a": {Content: "a"}})
	cases := map[string]struct {
		fault upstream.Fault
		want  error
	}{
		"401":            {upstream.Status(401), git.ErrAuthentication},
		"403":            {upstream.Status(403), git.ErrAuthentication},
		"404":            {upstream.Status(404), git.ErrNotFound},
		"400":            {upstream.Status(400), git.ErrProtocol},
		"500":            {upstream.Status(500), nil},
		"429":            {upstream.TooManyRequests(time.Minute), nil},
		"html":           {upstream.HTML(), git.ErrProtocol},
		"garbage":        {upstream.Garbage(), git.ErrProtocol},
		"drop":           {upstream.Drop(), nil},
		"cut body":       {upstream.CutBody(30), nil},
		"cut pack":       {upstream.CutAfter(3000).On(upstream.Fetch), nil},
		"flipped object": {upstream.Flip(5000).On(upstream.Fetch), git.ErrProtocol},
		"flipped header": {upstream.Flip(2).On(upstream.Fetch), git.ErrProtocol},
		"flipped count":  {upstream.Flip(8).On(upstream.Fetch), git.ErrLimit},
		"endless":        {upstream.Endless().On(upstream.LsRefs, upstream.Fetch), git.ErrLimit},
	}
	for _, version2 := range []bool{true, false} {
		for name, c := range cases {
			server := f.HTTP(upstream.HTTPOptions{WithoutV2: !version2})
			server.Always(c.fault)
			if version2 || name != "endless" { // Without version 2 nothing but the fetch is told apart as endless.
				_, err := newClient(t).Fetch(t.Context(), signed(server.URL("app")), git.Want{Hash: hash, Ref: "refs/heads/main"})
				checkError(t, name+" fetch", err, c.want)
			}
			server.Heal()
			commit, err := newClient(t).Fetch(t.Context(), signed(server.URL("app")), git.Want{Hash: hash})
			if err != nil {
				t.Errorf("%s healed: %v", name, err)
				continue
			}
			if err := commit.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestFaultsWhileListing(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	f.Repository("app").Commit("main", "m", upstream.Text(map[string]string{"a": "a"}))
	cases := map[string]struct {
		fault upstream.Fault
		want  error
	}{
		"401": {upstream.Status(401), git.ErrAuthentication}, "404": {upstream.Status(404), git.ErrNotFound},
		"500": {upstream.Status(500), nil}, "html": {upstream.HTML(), git.ErrProtocol},
		"garbage": {upstream.Garbage(), git.ErrProtocol}, "drop": {upstream.Drop(), nil},
		"cut": {upstream.CutBody(30), nil}, "endless": {upstream.Endless(), git.ErrLimit},
	}
	for name, c := range cases {
		for _, kind := range []upstream.Kind{upstream.InfoRefs, upstream.LsRefs} {
			server := f.HTTP(upstream.HTTPOptions{})
			server.Always(c.fault.On(kind))
			client := newClient(t, func(o *git.Options) { o.MaxRefs = 1000 })
			_, err := client.ListRefs(t.Context(), signed(server.URL("app")))
			checkError(t, name+" "+string(kind), err, c.want)
			server.Heal()
			if _, err := client.ListRefs(t.Context(), signed(server.URL("app"))); err != nil {
				t.Errorf("%s %s healed: %v", name, kind, err)
			}
		}
	}
}

func TestSilenceEnds(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	hash := f.Repository("app").Commit("main", "m", upstream.Files{"noise": {Content: noise(200_000)}})
	server := f.HTTP(upstream.HTTPOptions{})
	remote := signed(server.URL("app"))

	server.Always(upstream.Hang())
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errors.New("took too long"))
	defer cancel()
	_, err := newClient(t).ListRefs(ctx, remote)
	checkError(t, "hang", err, context.DeadlineExceeded)
	_, err = newClientOver(t, transport.Options{AllowLoopback: true, ResponseHeaderTimeout: 100 * time.Millisecond}).ListRefs(t.Context(), remote)
	checkError(t, "no header", err, nil)

	server.Heal()
	server.Always(upstream.HangAfter(1000).On(upstream.Fetch))
	_, err = newClientOver(t, transport.Options{AllowLoopback: true, StallTimeout: 200 * time.Millisecond}).Fetch(t.Context(), remote, git.Want{Hash: hash})
	checkError(t, "stall", err, transport.ErrStalled)

	ctx, stop := context.WithCancel(t.Context())
	server.Before(upstream.Fetch, stop)
	_, err = newClient(t).Fetch(ctx, remote, git.Want{Hash: hash})
	checkError(t, "cancel", err, context.Canceled)
}

func TestEveryLimitHolds(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	repository := f.Repository("app")
	hash := repository.Commit("main", "m", upstream.Files{
		"noise": {Content: noise(100_000)}, "zeros": {Content: strings.Repeat("\x00", 3<<20)},
		"a/b/c/d": {Content: "deep"}, "e": {Content: "e"},
	})
	server := f.HTTP(upstream.HTTPOptions{})
	cases := map[string]struct {
		reason string
		change func(*git.Options)
		ok     func(*git.Options)
	}{
		"pack":     {"The pack as sent.", func(o *git.Options) { o.MaxPackBytes = 90_000 }, func(o *git.Options) { o.MaxPackBytes = 120_000 }},
		"object":   {"A file that compresses to nothing.", func(o *git.Options) { o.MaxObjectBytes = 3<<20 - 1 }, func(o *git.Options) { o.MaxObjectBytes = 3 << 20 }},
		"unpacked": {"All objects together.", func(o *git.Options) { o.MaxUnpackedBytes = 3 << 20 }, func(o *git.Options) { o.MaxUnpackedBytes = 4 << 20 }},
		"objects":  {"The number of objects: a commit, four trees, four blobs.", func(o *git.Options) { o.MaxObjects = 8 }, func(o *git.Options) { o.MaxObjects = 9 }},
		"depth":    {"Directories in directories.", func(o *git.Options) { o.MaxTreeDepth = 2 }, func(o *git.Options) { o.MaxTreeDepth = 3 }},
		"files":    {"Four files and three directories.", func(o *git.Options) { o.MaxFiles = 6 }, func(o *git.Options) { o.MaxFiles = 7 }},
	}
	for name, c := range cases {
		_, err := newClient(t, c.change).Fetch(t.Context(), signed(server.URL("app")), git.Want{Hash: hash})
		checkError(t, name, err, git.ErrLimit)
		fetch(t, newClient(t, c.ok), signed(server.URL("app")), git.Want{Hash: hash})
	}
}

func TestNoFlippedBitGetsThrough(t *testing.T) {
	t.Parallel()
	f := upstream.ForTest(t)
	hash := f.Repository("app").Commit("main", "m", various())
	server := f.HTTP(upstream.HTTPOptions{})
	client := newClient(t)
	commit := fetch(t, client, signed(server.URL("app")), git.Want{Hash: hash})
	for offset := int64(0); offset < commit.BytesReceived-400; offset += 7 {
		server.FailNext(1, upstream.Flip(offset).On(upstream.Fetch))
		if commit, err := client.Fetch(t.Context(), signed(server.URL("app")), git.Want{Hash: hash}); err == nil {
			t.Errorf("bit %d flipped: fetched %s", offset, commit.Hash)
		}
	}
}
