package git

import (
	"bytes"
	"context"
	"io"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2"

	"sluice.dev/sluice/internal/credential"
)

// agent is how this client names itself on the wire. Some servers answer only what begins with "git/".
const agent = "git/2.0-sluice"

// service is one of the programs of a Git server.
type service string

const (
	uploadPack  service = "git-upload-pack"
	receivePack service = "git-receive-pack"
)

// mediaType is that of an advertisement, a request or a result over HTTP.
func (s service) mediaType(of string) string { return "application/x-" + string(s) + "-" + of }

// peer is the other end of a conversation.
type peer interface {
	// advert is what the server offers.
	advert() *advert
	// remembered tells that the advertisement is from an earlier conversation.
	remembered() bool
	// ask sends a request. The answer is read from the returned packets, up to limit bytes.
	ask(ctx context.Context, request []byte, limit int64) (*packetReader, error)
	// send is ask for what is too long to be held.
	send(ctx context.Context, m message, limit int64) (*packetReader, error)
	// close ends the conversation. After a complete one, what it ran on may be used again.
	close(complete bool)
}

// message is what is sent in one go.
type message struct {
	size int64
	// open reads it from its beginning, each time.
	open func() io.Reader
}

func plain(text []byte) message {
	return message{size: int64(len(text)), open: func() io.Reader { return bytes.NewReader(text) }}
}

// meter counts received bytes.
type meter struct{ bytes atomic.Int64 }

func (m *meter) total() int64 { return m.bytes.Load() }

// bounded counts what is read and ends with ErrLimit when it is more than allowed.
type bounded struct {
	in    io.Reader
	left  int64
	limit int64
	meter *meter
}

func newBounded(in io.Reader, limit int64, m *meter) *bounded {
	return &bounded{in: in, left: limit, limit: limit, meter: m}
}

func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.in.Read(p)
	b.meter.bytes.Add(int64(n))
	b.left -= int64(n)
	if b.left < 0 {
		b.left = 0
		return n - 1, limitErrorf("answer is longer than %d bytes", b.limit)
	}
	return n, err
}

// maxAdverts is how many advertisements are remembered.
const maxAdverts = 4096

// advertCache remembers version 2 advertisements: a few hundred bytes each, the same for all conversations with a
// repository. It forgets what was not used for longest, and is told to forget what led to an unexpected answer.
type advertCache = lru.Cache[string, *advert]

func cacheKey(to endpoint, as credential.Git) string {
	return to.username + "\x00" + to.password + "\x00" + as.Identity() + "\x00" + to.url.String()
}
