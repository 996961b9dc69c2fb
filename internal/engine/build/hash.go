package build

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Hash is sha256:hex of the object as JSON with its keys in order. Equal objects have equal hashes, in every version of
// this program. An object that JSON cannot tell, which Build never gives, has the empty hash.
func Hash(object *unstructured.Unstructured) string {
	raw, err := json.Marshal(object.Object)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(raw))
}

// RenderDigest is sha256:hex of a set of objects, in whatever order they are.
func RenderDigest(objects []*unstructured.Unstructured) string {
	lines := make([]string, 0, len(objects))
	for _, object := range objects {
		lines = append(lines, fmt.Sprintf("%q %q %q %q %s\n",
			object.GetAPIVersion(), object.GetKind(), object.GetNamespace(), object.GetName(), Hash(object)))
	}
	slices.Sort(lines)
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(strings.Join(lines, ""))))
}
