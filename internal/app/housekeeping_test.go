package app

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controllers "sluice.dev/sluice/controllers/source"
	"sluice.dev/sluice/storage"
)

// shows is a reader that has one object, or none without a UID.
type shows struct {
	client.Reader

	uid types.UID
}

func (s shows) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if s.uid == "" {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	obj.SetUID(s.uid)
	return nil
}

// TestWhoseArtifactsGo: what is not ours and does not exist goes with the first sweep.
func TestWhoseArtifactsGo(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason      string
		cached, api types.UID
		gone        bool
	}{
		"Cached":        {"It is there.", "ours", "", false},
		"Not cached":    {"The cache is not the last word.", "", "ours", false},
		"Old cache":     {"The cache shows what the object was made in place of.", "earlier", "ours", false},
		"Namesake":      {"Another object has its name.", "later", "later", true},
		"New namesake":  {"Another object has its name, and the cache lacks it.", "", "later", true},
		"Nowhere":       {"Nobody has it.", "", "", true},
		"Gone, but old": {"Nobody has it any more.", "earlier", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &housekeeping{cached: shows{uid: tc.cached}, reader: shows{uid: tc.api}, selector: labels.Everything()}
			object := storage.Object{Kind: controllers.GitRepositoryDir, Namespace: "a", Name: "b"}
			if ours, exists := h.look(t.Context(), object, "ours"); ours == tc.gone || exists == tc.gone {
				t.Errorf("%s ours: %t, exists: %t", tc.reason, ours, exists)
			}
		})
	}
}
