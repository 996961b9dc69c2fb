package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"

	"sluice.dev/sluice/internal/archive"
)

// maxChanges is how often an object may be another one than was just listed, or none, and maxGarbled how often its body may be
// wrong.
const maxChanges, maxGarbled = 3, 1

// Read reads an object, as it was listed or as it is by now, and returns which that is; read is told, and may be called again. It is
// gone, ErrNoObject, only where the listing says so too: in the place of a storage that cannot be reached a proxy may answer that
// there is no such page. One that holds more than most bytes by now is archive.ErrLimit.
func Read(ctx context.Context, b Bucket, object Object, most int64, read func(Object, io.Reader) error) (Object, error) {
	changes, garbled := 0, 0
	for {
		err := try(ctx, b, object, read)
		switch {
		case errors.Is(err, ErrChecksum) && garbled < maxGarbled:
			garbled++
			continue
		case !errors.Is(err, ErrChanged) && !errors.Is(err, ErrNoObject):
			return object, err
		}
		if changes++; changes > maxChanges {
			return object, fmt.Errorf("%s, and it is listed, %d times in a row", err.Error(), changes)
		}
		now, err := Find(ctx, b, object.Key)
		if err != nil {
			return object, err
		}
		if now.Size > most {
			return object, fmt.Errorf("%w: it holds more than %d bytes", archive.ErrLimit, most)
		}
		object = now
	}
}

func try(ctx context.Context, b Bucket, object Object, read func(Object, io.Reader) error) error {
	body, err := b.Get(ctx, object)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }() // Reading told whether the data was good.
	return read(object, body)
}
