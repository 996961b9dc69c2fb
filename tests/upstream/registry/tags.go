package registry

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
)

// serveTags serves a page of the tag list with the page size and the ETag that the manners ask for.
func serveTags(w http.ResponseWriter, r *http.Request, app http.Handler, manners manners) {
	if manners.tagsPage > 0 {
		query := r.URL.Query()
		if asked, err := strconv.Atoi(query.Get("n")); err != nil || asked > manners.tagsPage {
			query.Set("n", strconv.Itoa(manners.tagsPage))
		}
		r = r.Clone(r.Context())
		r.URL.RawQuery = query.Encode()
	}
	if !manners.tagETags {
		app.ServeHTTP(w, r)
		return
	}
	page := httptest.NewRecorder()
	app.ServeHTTP(page, r)
	maps.Copy(w.Header(), page.Header())
	if page.Code == http.StatusOK {
		sum := sha256.Sum256(page.Body.Bytes()) // Whether a page follows is no part of it.
		tag := fmt.Sprintf(`"%x"`, sum)
		w.Header().Set("Etag", tag)
		if slices.Contains(strings.Split(strings.ReplaceAll(r.Header.Get("If-None-Match"), " ", ""), ","), tag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	w.WriteHeader(page.Code)
	_, _ = w.Write(page.Body.Bytes()) // A client that has gone needs no tags.
}
