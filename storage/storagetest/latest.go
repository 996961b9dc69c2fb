package storagetest

import (
	"testing"

	"sluice.dev/sluice/storage"
)

func latestIsWhateverIsCurrent(t *testing.T, b *bench) {
	latest := podinfo.File(storage.LatestFile)
	b.absent(t, latest)
	for file, body := range map[string]string{"a.tar.gz": "hello", "b.tar.gz": "hello again"} {
		b.publish(t, podinfo, file, body)
		got, artifact, err := b.read(t.Context(), latest)
		if err != nil || got != body || artifact.Path != podinfo.File(file) {
			t.Errorf("Open %q: want %s with body %q, got %+v with %q, %v", latest, file, body, artifact, got, err)
		}
	}
	_, err := b.Publish(t.Context(), podinfo, b.stage(t, "forged"), recordOf(podinfo, storage.LatestFile))
	wantError(t, "Publish under the name of the latest", err, storage.ErrInvalidPath)
}
