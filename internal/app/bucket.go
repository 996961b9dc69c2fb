package app

import (
	"cmp"
	"os"
	"path/filepath"

	controllers "sluice.dev/sluice/controllers/source"
	"sluice.dev/sluice/internal/archive"
	"sluice.dev/sluice/internal/bucket"
	bucketsource "sluice.dev/sluice/internal/source/bucket"
)

// newBucketOpener makes what turns Bucket objects into sessions with object storages.
func newBucketOpener(options Options, limits archive.Limits, p parts) *bucketsource.Opener {
	return bucketsource.NewOpener(bucketsource.Options{
		Clients: bucket.New(bucket.Options{
			Transport: p.connections,
			Observe:   func(bytes int64) { p.metrics.received.WithLabelValues("bucket").Add(float64(bytes)) },
		}),
		Credentials: p.credentials,
		Stored:      p.store,
		Dir:         controllers.BucketDir,
		Cache:       bucket.NewCache(options.bucketCachePath(), options.BucketCacheBytes),
		Limits:      limits,
		MaxObjects:  options.Limits.BucketObjects,
		IndexDir:    options.bucketCachePath(),
	})
}

// bucketCachePath is the flag, or a folder of its own among the temporary files.
func (o *Options) bucketCachePath() string {
	return cmp.Or(o.BucketCachePath, filepath.Join(os.TempDir(), "sluice-bucket-cache"))
}
