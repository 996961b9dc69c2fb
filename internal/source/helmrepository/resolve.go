package helmrepository

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/helm"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/storage"
)

// seen is what an upstream had: the digest of its index, and how it tells whether that is still the same.
type seen struct {
	Upstream string `json:"upstream"`
	Revision string `json:"-"`
	helm.Validators
}

// Remember implements source.Rememberer. Validators are worth nothing towards another server, or for somebody else. What was
// seen since the record was written is newer than what it says.
func (s *session) Remember(record storage.Record) {
	s.record = record
	var noted seen
	if json.Unmarshal([]byte(record.Memo), &noted) == nil && noted.Upstream == digest.FromString(s.upstream).String() {
		s.now = noted
		s.now.Revision = record.Current.Revision
	}
	if known, ok := s.opener.known.Get(s.upstream); ok {
		s.now = known
	}
}

// Resolve asks whether the index is still the one that was seen last. What else it is, only its bytes can tell: where it is
// another one, or nobody knows, that is for Confirm to find out.
func (s *session) Resolve(ctx context.Context) (source.Selection, error) {
	if s.now.Validators == (helm.Validators{}) {
		return s.selection(""), nil
	}
	answer, err := s.get(ctx, s.now.Validators)
	if err != nil {
		return source.Selection{}, err
	}
	if answer.Unchanged {
		return s.selection(s.now.Revision), nil
	}
	_ = answer.Body.Close() // To read it takes a slot.
	return s.selection(""), nil
}

// Confirm implements source.Confirmer: it downloads the index. Where others do that at this moment it waits, and asks for
// itself whether what they got is what there is for it.
func (s *session) Confirm(ctx context.Context, _ source.Selection) (source.Selection, error) {
	release, err := s.opener.busy.hold(ctx, s.upstream)
	if err != nil {
		return source.Selection{}, explain(s.url, err)
	}
	defer release()
	if known, ok := s.opener.known.Get(s.upstream); ok {
		s.now = known
	}
	if err := s.download(ctx, s.now.Validators); err != nil {
		return source.Selection{}, err
	}
	s.opener.known.Add(s.upstream, s.now)
	if s.now.Revision == s.record.Current.Revision {
		_ = s.Close() // It was only read, and nobody is going to ask for it.
	}
	return s.selection(s.now.Revision), nil
}

// Share implements source.Sharer: who was shown an index under the same credential may have what was made of it.
func (s *session) Share(_ context.Context, selected source.Selection) string {
	return s.upstream + " " + selected.Revision + " " + s.checksum
}

func (s *session) selection(revision string) source.Selection {
	return source.Selection{
		Revision: revision, Name: "index-" + strings.TrimPrefix(revision, digest.SHA256.String()+":"), Extension: ".yaml",
		ConfigChecksum: s.checksum,
	}
}

func (s *session) get(ctx context.Context, unless helm.Validators) (helm.Answer, error) {
	answer, err := s.opener.Client.Get(ctx, helm.Request{URL: s.url, Login: s.login, Unless: unless, Limit: s.opener.MaxIndexBytes})
	return answer, explain(s.url, err)
}

// download gets the index into a temporary file, unless it is the one that was seen.
func (s *session) download(ctx context.Context, unless helm.Validators) error {
	_ = s.Close() // Work that begins anew downloads anew.
	answer, err := s.get(ctx, unless)
	if err != nil || answer.Unchanged {
		return err
	}
	if s.file, err = helm.Save(ctx, answer, s.opener.TempDir); err != nil {
		return explain(s.url, err)
	}
	s.now = seen{Upstream: digest.FromString(s.upstream).String(), Revision: s.file.Digest.String(), Validators: answer.Validators}
	return nil
}

// explain gives an error of the server Flux's words, and the time before which it is not to be asked again.
func explain(address string, err error) error {
	if err == nil || errors.Is(err, memory.ErrShortage) {
		return err
	}
	wrapped := fmt.Errorf("failed to fetch Helm repository index: failed to cache index to temporary file: failed to fetch %s : %w",
		credential.CleanURL(address), err)
	if status, ok := errors.AsType[*helm.StatusError](err); ok && status.RetryAfter > 0 {
		return failure.RetryAfter(sourcev1.FailedReason, status.RetryAfter, wrapped)
	}
	return failure.Retry(sourcev1.FailedReason, wrapped)
}
