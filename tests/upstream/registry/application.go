package registry

import (
	"context"
	"fmt"
	"net/http"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem" // the driver for Options.Dir
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"   // the driver without it
	"github.com/sirupsen/logrus"
)

// application is Distribution itself, without access control: that stands in front of it.
type application struct{ *handlers.App }

// newApplication keeps its data in dir, or in memory when dir is empty.
func newApplication(ctx context.Context, dir string) (app *application, err error) {
	// Distribution logs to the logger of the process and takes no other.
	logrus.SetLevel(logrus.PanicLevel)
	driver, parameters := "inmemory", configuration.Parameters{}
	if dir != "" {
		driver, parameters = "filesystem", configuration.Parameters{"rootdirectory": dir}
	}
	config := &configuration.Configuration{Storage: configuration.Storage{
		driver:        parameters,
		"delete":      {"enabled": true},
		"maintenance": {"uploadpurging": map[any]any{"enabled": false}},
	}}
	config.HTTP.Secret = "the same on every run"
	config.HTTP.RelativeURLs = true
	// An index may name platforms that were never pushed, as mirrors have it.
	config.Validation.Manifests.Indexes.Platforms = "none"
	defer func() {
		// Distribution panics where others return an error.
		if reason := recover(); reason != nil {
			app, err = nil, fmt.Errorf("configure distribution: %v", reason)
		}
	}()
	return &application{App: handlers.NewApp(ctx, config)}, nil
}

func (a *application) close() {
	if a != nil {
		// It closes the cache of a mirror, which this registry is not.
		_ = a.Shutdown()
	}
}

// get answers a request for another path of the same repository.
func (a *application) get(w http.ResponseWriter, r *http.Request, path string) {
	moved := r.Clone(r.Context())
	moved.URL.Path, moved.URL.RawPath = path, ""
	a.ServeHTTP(w, moved)
}
