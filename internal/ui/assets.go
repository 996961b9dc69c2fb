package ui

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strings"
)

//go:embed assets
var assetFiles embed.FS

//go:embed templates
var templateFiles embed.FS

// assets are the script and the styles by names that change with what they say, so that browsers keep them for good.
type assets struct {
	names  map[string]string
	bodies map[string][]byte
}

// hashLength is how much of a file's hash its name has.
const hashLength = 12

func newAssets() (assets, error) {
	made := assets{names: map[string]string{}, bodies: map[string][]byte{}}
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		return made, fmt.Errorf("read the files of pages: %w", err)
	}
	for _, entry := range entries {
		body, err := assetFiles.ReadFile("assets/" + entry.Name())
		if err != nil {
			return made, fmt.Errorf("read the files of pages: %w", err)
		}
		sum := sha256.Sum256(body)
		extension := path.Ext(entry.Name())
		name := strings.TrimSuffix(entry.Name(), extension) + "." + hex.EncodeToString(sum[:])[:hashLength] + extension
		made.names[entry.Name()], made.bodies[name] = name, body
	}
	return made, nil
}

func (a assets) serve(w http.ResponseWriter, r *http.Request) {
	body, found := a.bodies[r.PathValue("name")]
	if !found {
		http.NotFound(w, r)
		return
	}
	types := map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
	w.Header().Set("Content-Type", types[path.Ext(r.PathValue("name"))])
	w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	_, _ = w.Write(body) // Whoever has gone does not miss it.
}
