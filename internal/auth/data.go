package auth

import (
	"context"
	"maps"
	"slices"

	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// Limits of a Secret that is read as a whole, in bytes.
const (
	maxData  = 1 << 20
	maxValue = 512 << 10
)

// Data returns every key of a Secret, for verification. The field is the one that names the Secret, as
// spec.verify.secretRef; errors name it, with reason VerificationError. A Secret without keys, of more than 1 MiB, or
// with a value of more than 512 KiB is refused, and tried again like a missing one.
func (s Secrets) Data(ctx context.Context, namespace, secretName, field string) (map[string][]byte, error) {
	found, err := s.read(ctx, namespace, secretName, field, sourcev1.VerificationErrorReason)
	if err != nil {
		return nil, err
	}
	if len(found.data) == 0 {
		return nil, found.errorf("has no keys; store in it what is trusted, or name another one in %s", field)
	}
	total := 0
	for _, key := range slices.Sorted(maps.Keys(found.data)) {
		value, err := found.take(key, maxValue)
		if err != nil {
			return nil, err
		}
		total += len(key) + len(value)
	}
	if total > maxData {
		return nil, found.errorf("is larger than %d bytes; keep only what %s needs in it", maxData, field)
	}
	return found.data, nil
}
