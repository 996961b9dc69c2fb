package buckets

import (
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Writer is a client of the S3 server at address, by which a test fills it. Each request has a connection of its own: versitygw
// may read what it left of an upload as the next request, and then answers 400 to whoever uses the connection next.
func Writer(address string) (*minio.Client, error) {
	transport, err := minio.DefaultTransport(false)
	if err != nil {
		return nil, err
	}
	transport.DisableKeepAlives = true
	return minio.New(address, &minio.Options{Creds: credentials.NewStaticV4(AccessKey, SecretKey, ""), Transport: transport})
}
