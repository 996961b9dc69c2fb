package sourcetest

import (
	"errors"
	"io"
	"time"

	"sluice.dev/sluice/internal/source"
)

// Reconfigurer is an Upstream whose spec has more to say than what is fetched.
type Reconfigurer interface {
	Upstream
	// Reconfigure changes the spec so that the same revision gives other bytes.
	Reconfigure()
}

// Unpacker is an Upstream whose artifacts are no archives.
type Unpacker interface {
	Upstream
	// Unpack reads an artifact to its end, and says what is in it as Files does.
	Unpack(artifact io.Reader) map[string]string
}

// Nameless is an Upstream that does not say which revision it has: only its content tells.
type Nameless interface {
	Upstream
	// Nameless does nothing.
	Nameless()
}

// Republisher is an Upstream that can publish the same content once more, under another revision.
type Republisher interface {
	Upstream
	Republish()
}

// Prover is an Upstream whose spec can ask for a proof.
type Prover interface {
	Upstream
	// Demand makes the spec ask for a proof, which what upstream holds now has, and whatever Advance makes has not.
	Demand()
	// Rotate changes the trusted keys, without a new spec, so that what upstream holds now is still proven.
	Rotate()
	// Distrust changes the trusted keys so that nothing is proven any more.
	Distrust()
}

// abilities are the facts of what only some kinds can do.
func abilities(upstream Upstream) map[string]func(*rig) {
	facts := map[string]func(*rig){}
	if _, ok := upstream.(Reconfigurer); ok {
		facts["NewConfigurationGetsAnotherPath"] = newConfiguration
		facts["LostStoreUnderAnotherConfiguration"] = lostStoreReconfigured
	}
	if _, ok := upstream.(Nameless); !ok {
		facts["RefusedAnnouncementFetchesNothing"] = refusedAnnouncement
	}
	if _, ok := upstream.(Republisher); ok {
		facts["TheSameContentUnderANewRevisionIsNotFetched"] = republished
		facts["TheSameContentIsFetchedWhenItIsLost"] = republishedAfterLoss
	}
	if _, ok := upstream.(Prover); ok {
		facts["WhatIsProvenIsStored"] = proven
		facts["WhatIsNotProvenIsNeverStored"] = notProven
		facts["OtherKeysProveAgainWithoutAFetch"] = rotated
		facts["DistrustKeepsTheArtifactAndStoresNothing"] = distrusted
	}
	return facts
}

func (r *rig) reconfigure() {
	reconfigurer, ok := r.upstream.(Reconfigurer)
	if !ok {
		r.t.Fatal("the upstream of another test can be reconfigured")
	}
	reconfigurer.Reconfigure()
}

func (r *rig) prover() Prover {
	prover, ok := r.upstream.(Prover)
	if !ok {
		r.t.Fatal("the upstream of another test can prove things")
	}
	return prover
}

func (r *rig) republish() {
	republisher, ok := r.upstream.(Republisher)
	if !ok {
		r.t.Fatal("the upstream of another test can republish")
	}
	republisher.Republish()
}

func republished(r *rig) {
	first := r.run().Record.Current
	fetches := r.upstream.Fetches()
	r.republish()
	outcome := r.run()
	second := outcome.Record.Current
	if !outcome.Changed || second.Revision == first.Revision || second.Digest != first.Digest || second.Path == first.Path {
		r.t.Errorf("first %+v, second %+v", first, second)
	}
	if r.upstream.Fetches() != fetches {
		r.t.Error("the same content was fetched again")
	}
	r.check(first)
	r.check(second)
}

func republishedAfterLoss(r *rig) {
	first := r.run().Record.Current
	fetches := r.upstream.Fetches()
	if err := r.store.Damage(first.Path); err != nil {
		r.t.Fatal(err)
	}
	r.republish()
	second := r.run().Record.Current
	if r.upstream.Fetches() == fetches {
		r.t.Error("what is damaged was used again")
	}
	r.check(second)
}

func proven(r *rig) {
	r.prover().Demand()
	record := r.run().Record
	if record.VerifiedBy == "" {
		r.t.Errorf("nobody vouches for %+v", record)
	}
	r.check(record.Current)
	if again := r.run(); again.Changed || again.Record.VerifiedBy != record.VerifiedBy {
		r.t.Errorf("before %+v, after %+v", record, again.Record)
	}
}

// refused runs and wants a verification error.
func (r *rig) refused() source.Outcome {
	r.t.Helper()
	outcome, err := r.try(subject)
	var staged *source.StageError
	if !errors.As(err, &staged) || staged.Stage != source.StageVerify {
		r.t.Fatalf("want a refusal, got %v", err)
	}
	return outcome
}

func notProven(r *rig) {
	r.prover().Demand()
	first := r.run().Record.Current
	fetches := r.upstream.Fetches()
	r.upstream.Advance()
	outcome := r.refused()
	if outcome.Record.Current.Path != first.Path || r.upstream.Fetches() != fetches {
		r.t.Errorf("%d fetches, record %+v", r.upstream.Fetches()-fetches, outcome.Record)
	}
}

func rotated(r *rig) {
	r.prover().Demand()
	first := r.run().Record
	fetches := r.upstream.Fetches()
	r.prover().Rotate()
	r.clock.SetTime(r.clock.Now().Add(time.Hour))
	outcome := r.run()
	second := outcome.Record
	if !outcome.Changed || second.ConfigChecksum == first.ConfigChecksum || second.Current.Path != first.Current.Path ||
		!second.Current.StoredAt.Equal(first.Current.StoredAt) {
		r.t.Errorf("first %+v, second %+v", first, second)
	}
	if r.upstream.Fetches() != fetches {
		r.t.Error("other keys made the content be fetched again")
	}
	r.check(second.Current)
}

func distrusted(r *rig) {
	r.prover().Demand()
	first := r.run().Record
	r.prover().Distrust()
	if outcome := r.refused(); outcome.Record.Current.Path != first.Current.Path || outcome.Record.ConfigChecksum != first.ConfigChecksum {
		r.t.Errorf("got %+v", outcome.Record)
	}
	r.check(first.Current)
}

func newConfiguration(r *rig) {
	first := r.run().Record
	r.reconfigure()
	second := r.run().Record
	if second.Current.Revision != first.Current.Revision || second.ConfigChecksum == first.ConfigChecksum {
		r.t.Errorf("first %+v, second %+v", first, second)
	}
	if second.Current.Digest == first.Current.Digest || second.Current.Path == first.Current.Path {
		r.t.Errorf("%s serves other bytes than before", second.Current.Path)
	}
	r.check(second.Current)
	if again := r.run(); again.Changed {
		r.t.Error("the new configuration is not recognised")
	}
}

func lostStoreReconfigured(r *rig) {
	plain := r.run().Record.Current
	r.reconfigure()
	second := r.run().Record
	if err := r.store.Delete(r.t.Context(), subject.Object); err != nil {
		r.t.Fatal(err)
	}
	s := subject
	s.Reported, s.ReportedChecksum = &second.Current, second.ConfigChecksum
	outcome, err := r.try(s)
	if err != nil {
		r.t.Fatal(err)
	}
	if outcome.Record.Current.Path == plain.Path {
		r.t.Errorf("%s served other bytes before the storage was lost", plain.Path)
	}
	r.check(outcome.Record.Current)
}
