// Package helmrepository is the HelmRepository kind of source: a HelmRepository's spec in, the index of its repository out.
// It does not know how an index is read, or what becomes of it.
package helmrepository

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/auth"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/helm"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/storage"
)

const (
	// DefaultMaxIndexBytes is Flux's bound on an index.
	DefaultMaxIndexBytes = 50 << 20
	// maxKnown is of how many upstreams it is remembered what they had last.
	maxKnown = 4096
	// format is part of what is shared and recorded: another one means that indexes are stored in another way.
	format = "1"
)

// Credentials reads what a spec refers to in Secrets.
type Credentials interface {
	// Helm gives the credential for a repository, and its URL without user and password.
	Helm(ctx context.Context, request auth.HelmRequest) (credential.Login, string, error)
}

// Options are what an Opener works with. All are required but MaxIndexBytes and TempDir.
type Options struct {
	Client      *helm.Client
	Credentials Credentials
	// Store has the artifacts that a new one is made from.
	Store storage.Reader
	// MaxIndexBytes bounds an index, compressed and not. Default DefaultMaxIndexBytes.
	MaxIndexBytes int64
	// TempDir holds indexes while they are read; empty means the system's.
	TempDir string
}

// Opener opens sessions for HelmRepository objects.
type Opener struct {
	Options

	// known is what upstreams had when they were asked last, by whom they were asked for.
	known *lru.Cache[string, seen]
	busy  downloads
}

// NewOpener returns an Opener.
func NewOpener(options Options) *Opener {
	if options.MaxIndexBytes == 0 {
		options.MaxIndexBytes = DefaultMaxIndexBytes
	}
	known, _ := lru.New[string, seen](maxKnown) // It fails for a size below one alone.
	return &Opener{Options: options, known: known}
}

// Open checks the spec and reads the credentials.
func (o *Opener) Open(ctx context.Context, obj *sourcev1.HelmRepository) (source.Session, error) {
	if obj.Undecodable != "" {
		return nil, failure.Stall(sourcev1.FailedReason, errors.New(obj.Undecodable))
	}
	address, err := url.Parse(obj.Spec.URL)
	if err == nil && address.Scheme == "oci" {
		err = errors.New("'oci' URL scheme cannot be used with 'default' HelmRepository type")
	} else if err != nil {
		err = errors.New("it cannot be parsed") // The parser quotes what it stumbles over, which may be a piece of a password.
	}
	if err != nil {
		return nil, failure.Stall(sourcev1.URLInvalidReason, fmt.Errorf("invalid Helm repository URL: %w", err))
	}
	request := auth.HelmRequest{Namespace: obj.Namespace, URL: obj.Spec.URL}
	if obj.Spec.SecretRef != nil {
		request.SecretName = obj.Spec.SecretRef.Name
	}
	if obj.Spec.CertSecretRef != nil {
		request.CertSecretName = obj.Spec.CertSecretRef.Name
	}
	login, clean, err := o.Credentials.Helm(ctx, request)
	if err != nil {
		return nil, err
	}
	s := &session{opener: o, login: login, url: helm.IndexURL(clean)}
	s.upstream = login.Identity() + " " + s.url
	s.checksum, err = source.ConfigChecksum("helmrepository", format)
	return s, err
}

// session is one reconcile of one HelmRepository.
type session struct {
	opener   *Opener
	login    credential.Login
	url      string
	upstream string // names the index and who asks for it
	checksum string

	// What was learnt on the way.
	record storage.Record
	now    seen
	file   *helm.File // the index, once it was downloaded
}

// Close lets go of what was downloaded.
func (s *session) Close() error {
	if s.file == nil {
		return nil
	}
	file := s.file
	s.file = nil
	return file.Close()
}

// downloads has one object download what several ask for at the same time.
type downloads struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when who has the name is done
}

// hold waits until nobody else has the name, and returns what lets go of it.
func (d *downloads) hold(ctx context.Context, name string) (release func(), err error) {
	for {
		d.mu.Lock()
		if d.held == nil {
			d.held = map[string]chan struct{}{}
		}
		other, busy := d.held[name]
		if !busy {
			mine := make(chan struct{})
			d.held[name] = mine
			d.mu.Unlock()
			return func() {
				d.mu.Lock()
				defer d.mu.Unlock()
				delete(d.held, name)
				close(mine)
			}, nil
		}
		d.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another object that fetches the same: %w", context.Cause(ctx))
		}
	}
}
