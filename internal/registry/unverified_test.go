package registry

import (
	"bytes"
	"errors"
	"io"
	"testing"

	fixture "sluice.dev/sluice/tests/upstream/registry"
)

// TestUnverifiedLeavesOnlyTheDigestToTheCaller: what else is checked about a blob stays checked.
func TestUnverifiedLeavesOnlyTheDigestToTheCaller(t *testing.T) {
	t.Parallel()
	content := noise(100_000)
	for reason, test := range map[string]struct {
		fault fixture.Fault
		want  error
		same  bool
	}{
		"nothing is wrong":       {fixture.Fault{}, nil, true},
		"a byte changed":         {fixture.Corrupt(50_000), nil, false},
		"never complete":         {cutAlways(), io.ErrUnexpectedEOF, false},
		"more bytes, no length":  {stream(append(bytes.Clone(content), 'x')), ErrDigest, true},
		"fewer bytes, no length": {stream(content[:99_999]), io.ErrUnexpectedEOF, false},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			site, r := distribution(t, fixture.None)
			d := site.Repository(name).PushBlob("application/octet-stream", content)
			site.Always(test.fault.On(fixture.Blob))
			client, _ := newClient(t, nil)
			blob, err := client.Unverified(t.Context(), r, d)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = blob.Close() }()
			got, err := io.ReadAll(blob)
			if !errors.Is(err, test.want) || bytes.Equal(got, content) != test.same {
				t.Errorf("got %d bytes, equal: %v, and %v; want %v", len(got), bytes.Equal(got, content), err, test.want)
			}
		})
	}
}
