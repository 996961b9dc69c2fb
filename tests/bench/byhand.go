package main

import (
	"archive/tar"
	"context"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"
)

// byHand does with the library alone what is to be done with a bucket.
type byHand struct{ *minio.Core }

func newByHand(address string) (*byHand, error) {
	client, err := bucketWriter(address)
	return &byHand{&minio.Core{Client: client}}, err
}

// list gives all objects.
func (h *byHand) list(context.Context) (all []minio.ObjectInfo, err error) {
	token := ""
	for {
		page, err := h.ListObjectsV2(benchBucket, "", "", token, "", 0)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Contents...)
		if token = page.NextContinuationToken; !page.IsTruncated {
			return all, nil
		}
	}
}

// get copies an object.
func (h *byHand) get(ctx context.Context, key string, to io.Writer) error {
	body, _, _, err := h.GetObject(ctx, benchBucket, key, minio.GetObjectOptions{})
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(to, body)
	return err
}

// cold brings everything, as many objects at once as sluice does, and packs it.
func (h *byHand) cold(ctx context.Context, path string) error {
	all, err := h.list(ctx)
	if err != nil {
		return err
	}
	bodies := make([]buffer, len(all))
	group, fetching := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i, object := range all {
		group.Go(func() error { return h.get(fetching, object.Key, &bodies[i]) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	packed := gzip.NewWriter(file)
	archive := tar.NewWriter(packed)
	for i, object := range all {
		if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: object.Key, Size: int64(len(bodies[i])), Mode: 0o600}); err != nil {
			return err
		}
		if _, err := archive.Write(bodies[i]); err != nil {
			return err
		}
	}
	for _, end := range []func() error{archive.Close, packed.Close, file.Close} {
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}

// buffer takes a body.
type buffer []byte

func (b *buffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}
