package bucket

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// maxEmpty is how many pages in a row may bring nothing: what was deleted just now may take some.
const maxEmpty = 100

// Keep tells which of the listed objects are kept.
type Keep func(ctx context.Context, object Object) (bool, error)

// Gather lists all objects whose keys begin with the prefix, in the order of their keys, and keeps those that keep says. Most
// bounds how many are listed. First tells whether an error is about the first page. ErrLimit where there are more, ErrListing
// where pages repeat themselves.
func Gather(ctx context.Context, b Bucket, prefix string, most int, keep Keep) (all []Object, first bool, err error) {
	tokens := map[string]bool{}
	listed, empty := 0, 0
	for listing := (Listing{Prefix: prefix}); ; {
		page, err := b.List(ctx, listing)
		if err != nil {
			return nil, len(tokens) == 0, err
		}
		if listed += len(page.Objects); listed > most {
			return nil, false, fmt.Errorf("%w: it has more than %d objects", ErrLimit, most)
		}
		if all, err = keep.add(ctx, all, page.Objects, prefix); err != nil {
			return nil, false, err
		}
		if empty++; len(page.Objects) > 0 {
			empty = 0
		}
		if page.Next == "" {
			return sorted(all)
		}
		if tokens[page.Next] || empty > maxEmpty {
			return nil, false, fmt.Errorf("%w: its pages do not end", ErrListing)
		}
		tokens[page.Next] = true
		listing.Token = page.Next
	}
}

// add keeps what is kept of a page.
func (k Keep) add(ctx context.Context, all, page []Object, prefix string) ([]Object, error) {
	for _, object := range page {
		if object.Size < 0 || object.Key == "" || !strings.HasPrefix(object.Key, prefix) {
			return nil, fmt.Errorf("%w: it has an object that was not asked for, %.128q", ErrListing, object.Key)
		}
		kept, err := k(ctx, object)
		if err != nil {
			return nil, err
		}
		if kept {
			all = append(all, object)
		}
	}
	return all, nil
}

// sorted puts objects in the order of their keys' bytes, whatever order the storage has.
func sorted(all []Object) ([]Object, bool, error) {
	slices.SortFunc(all, func(a, b Object) int { return strings.Compare(a.Key, b.Key) })
	for i := 1; i < len(all); i++ {
		if all[i].Key == all[i-1].Key {
			return nil, false, fmt.Errorf("%w: it has %.128q twice", ErrListing, all[i].Key)
		}
	}
	return all, false, nil
}

// Find gives an object as it is now: in a listing of what begins with its key it comes first, though maybe behind pages that
// bring nothing. ErrNoObject where it is not listed.
func Find(ctx context.Context, b Bucket, key string) (Object, error) {
	listing := Listing{Prefix: key, Most: 1}
	for range maxEmpty + 1 {
		page, err := b.List(ctx, listing)
		if err != nil {
			return Object{}, err
		}
		for _, object := range page.Objects {
			if object.Key == key {
				return object, nil
			}
		}
		if len(page.Objects) > 0 || page.Next == "" {
			return Object{}, ErrNoObject
		}
		listing.Token = page.Next
	}
	return Object{}, fmt.Errorf("%w: its pages do not end", ErrListing)
}
