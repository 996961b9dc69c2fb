package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/minio/minio-go/v7"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/tests/testenv"
	"sluice.dev/sluice/tests/upstream/buckets"
)

// bucket is the name of the bucket, and of its object.
const bucket = "configuration"

// startStorage starts an S3 server with a bucket.
func (d *demo) startStorage(ctx context.Context) (err error) {
	server, err := buckets.Start(context.WithoutCancel(ctx), testenv.Root(), "s3")
	if err != nil {
		return err
	}
	d.cleanup = append(d.cleanup, func() error { server.Close(); return nil })
	d.storage = server.Address
	if d.objects, err = buckets.Writer(server.Address); err != nil {
		return fmt.Errorf("make a client of the storage: %w", err)
	}
	return d.objects.MakeBucket(ctx, bucket, minio.MakeBucketOptions{})
}

// bucketFollowed makes an artifact of a bucket's objects, and changes one of them.
func (d *demo) bucketFollowed(ctx context.Context) error {
	for key, body := range map[string]string{"app/app.yaml": manifestOf("app", 1), "app/settings.yaml": "size: 1\n", "notes.txt": "ignored\n", ".sourceignore": "*.txt\n"} {
		if err := d.put(ctx, key, body); err != nil {
			return err
		}
	}
	objects := fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata:
  name: storage
stringData:
  accesskey: %s
  secretkey: %s
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: Bucket
metadata:
  name: %s
spec:
  bucketName: %s
  endpoint: %s
  insecure: true
  interval: 1s
  secretRef:
    name: storage
`, buckets.AccessKey, buckets.SecretKey, bucket, bucket, d.storage)
	if err := d.kubectl(ctx, objects, "apply", "-f", "-"); err != nil {
		return err
	}
	first, err := waitFor[sourcev1.Bucket](ctx, d, bucket, "has an artifact", func(*meta.Artifact) bool { return true })
	if err != nil {
		return err
	}
	if err := d.put(ctx, "app/settings.yaml", "size: 2\n"); err != nil {
		return err
	}
	second, err := waitFor[sourcev1.Bucket](ctx, d, bucket, "has other content", func(a *meta.Artifact) bool { return a.Digest != first.Status.Artifact.Digest })
	if err != nil {
		return err
	}
	if err := d.kubectl(ctx, "", "get", "buckets"); err != nil {
		return err
	}
	return d.fetch(ctx, second.Status.Artifact)
}

func (d *demo) put(ctx context.Context, key, body string) error {
	_, err := d.objects.PutObject(ctx, bucket, key, strings.NewReader(body), int64(len(body)), minio.PutObjectOptions{})
	if err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	return nil
}
