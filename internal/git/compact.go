package git

import (
	"context"
	"errors"
	"io"
	"os"

	"sluice.dev/sluice/internal/memory"
)

// slack is by how much the data grows at least before it is compacted.
const slack = 4 << 20

// wasteful tells whether the data is more than twice what it was after the last compaction.
func (k *kept) wasteful() bool { return k.length > 2*k.compact+slack }

// compacted writes anew what is live. It returns the file's name; nil where that is more than the most bytes.
func (k *kept) compacted(ctx context.Context, p *pack, dir string, most int64) (_ *kept, name string, err error) {
	needed := int64(len(p.objects)) * keptCost
	if err := memory.Draw(ctx, needed); err != nil {
		return nil, "", err
	}
	defer memory.Return(ctx, needed)
	live, err := p.live(ctx, k.whole())
	if err != nil || p.lengthOf(live) > most {
		return nil, "", err
	}
	file, err := os.CreateTemp(dir, dataPattern)
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			_ = os.Remove(file.Name()) // What is left takes room until the next start.
		}
	}()
	next := &kept{remembered: k.remembered}
	moved := make([]int32, len(p.objects))
	for i, object := range p.objects {
		if !live[i] {
			continue
		}
		moved[i] = int32(len(next.objects)) //nolint:gosec // The number of objects is limited.
		if _, err := io.Copy(file, io.NewSectionReader(p.spool, object.data, object.length)); err != nil {
			return nil, "", err
		}
		object.data, next.length = next.length, next.length+object.length
		next.objects = append(next.objects, object)
	}
	for i := range next.objects {
		if object := &next.objects[i]; object.base != noBase {
			object.base = moved[object.base]
		}
	}
	for _, index := range p.byHash {
		if live[index] {
			next.byHash = append(next.byHash, moved[index])
		}
	}
	next.compact = next.length
	return next, file.Name(), nil
}

// lengthOf is how many bytes the marked objects take.
func (p *pack) lengthOf(marked []bool) (length int64) {
	for i := range p.objects {
		if marked[i] {
			length += p.objects[i].length
		}
	}
	return length
}

// live marks what the tips lead to, and what that is put together from.
func (p *pack) live(ctx context.Context, tips []tip) ([]bool, error) {
	live := make([]bool, len(p.objects))
	for _, tip := range tips {
		if err := p.mark(ctx, tip, 0, live); err != nil {
			return nil, err
		}
	}
	for i := range p.objects {
		for base := p.objects[i].base; live[i] && base != noBase && !live[base]; base = p.objects[base].base {
			live[base] = true
		}
	}
	return live, nil
}
