package bucket

// Client is the client behind what Open gives.
func Client(b Bucket) Bucket {
	inner, _ := b.(scrubbed)
	return inner.Bucket
}
