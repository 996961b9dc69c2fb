package oci_test

import (
	"context"
	"strings"
	"testing"
	"time"

	registryclient "sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/source/oci"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/tests/upstream/registry"
)

// TestSessionsHoldNothingLargeBetweenSteps: who has the room for a large manifest may wait for something else that those
// hold who wait for the room.
func TestSessionsHoldNothingLargeBetweenSteps(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	manifest, err := registry.Flux(r.layer(), map[string]string{"a": strings.Repeat("a", 200<<10)})
	if err != nil {
		t.Fatal(err)
	}
	manifest.Layers[0].Annotations = map[string]string{"b": strings.Repeat("b", 200<<10)}
	r.head = r.edited.Push("latest", manifest)
	r.Demand()
	client, err := registryclient.New(registryclient.Options{Transport: transport.New(transport.Options{AllowLoopback: true}), MaxHeldBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	opener := oci.NewOpener(oci.Options{Client: client, Credentials: r.secrets, TempDir: t.TempDir(), Trust: r.opener.Trust})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()

	const sessions = 3
	var verified [sessions]source.Session
	var selected [sessions]source.Selection
	for i := range sessions {
		session, err := opener.Open(ctx, r.obj)
		if err != nil {
			t.Fatal(err)
		}
		if selected[i], err = session.Resolve(ctx); err != nil {
			t.Fatal(err)
		}
		verifier, _ := session.(source.Verifier)
		if _, err := verifier.Verify(ctx, selected[i]); err != nil {
			t.Fatal(err)
		}
		verified[i] = session
	}
	for i, session := range verified {
		content, err := session.Fetch(ctx, selected[i], "")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = content.Close() }()
		if len(content.Metadata["a"]) != 200<<10 {
			t.Errorf("the manifest's annotations are not those that were pushed: %d", len(content.Metadata))
		}
	}
}
