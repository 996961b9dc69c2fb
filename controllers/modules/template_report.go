package modules

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/catalog/objects"
	"sluice.dev/sluice/internal/event"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/kernel"
	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/status"
)

// maxSaid bounds what status repeats of names and errors, in bytes.
const maxSaid = 1024

func cut(text string) string { return printable.Cut(text, maxSaid) }

// Report implements kernel.Kind.
func (k *templates) Report(obj *modulesv1.ModuleTemplate, f finding, _ error) kernel.Report {
	if !f.looked {
		return kernel.Report{Facts: k.Table().Stated(obj)}
	}
	report := kernel.Report{Facts: f.facts(), Progress: f.waiting, Message: f.message()}
	s := &obj.Status
	if !objects.StatusIsCurrent(obj) || s.Content != f.content {
		s.Digest, s.Revision = "", ""
	}
	s.ModuleName, s.Version, s.Channel, s.Content = f.module, f.version, f.channel, f.content
	s.ArtifactVersion = f.artifactVersion
	s.SourceRef, s.UsedBy = f.source, count(f.uses)
	// The API server keeps whole seconds.
	s.Since = &metav1.Time{Time: f.since.Truncate(1e9)}
	switch {
	case f.artifact != nil:
		s.Digest, s.Revision = f.artifact.Digest, f.artifact.Revision
	case s.Digest == "":
		s.Digest = objects.PinOf(f.content)
	}
	return report
}

// message is that of Ready.
func (f *finding) message() string {
	what := "Release of module " + f.module
	if f.version != "" {
		what = fmt.Sprintf("Release %s of module %s", f.version, f.module)
	}
	if f.artifact == nil {
		return what + " is fetched when something needs it"
	}
	return what + " can be installed"
}

// facts are the conditions beside Ready.
func (f *finding) facts() []status.Fact {
	facts := []status.Fact{f.offered()}
	switch {
	case f.artifactErr != nil:
		facts = append(facts, status.False(
			modulesv1.ArtifactVerifiedCondition, failure.Of(f.artifactErr).Reason, cut(f.artifactErr.Error())))
	case f.artifact != nil:
		facts = append(facts, status.True(modulesv1.ArtifactVerifiedCondition, modulesv1.SucceededReason,
			"Artifact is there, and is the one that this version was first seen with"))
	}
	for _, reason := range []string{modulesv1.ReleaseConflictReason, modulesv1.ChannelConflictReason} {
		if found, ok := f.find(reason); ok {
			facts = append(facts, status.True(modulesv1.ConflictCondition, reason, cut(found.Message)))
			break
		}
	}
	if f.uses > 0 {
		facts = append(facts, status.True(modulesv1.InUseCondition, modulesv1.InstalledReason,
			"Installations run the release, are about to, or may go back to it"))
	}
	return facts
}

// offered says how the release can be found, with the reason that limits it most and the messages of all.
func (f *finding) offered() status.Fact {
	fact := status.True(modulesv1.OfferedCondition, modulesv1.SucceededReason, "Installations can find the release")
	var messages []string
	for _, reason := range []string{
		modulesv1.ModuleUnknownReason, modulesv1.ReleaseConflictReason, modulesv1.ChannelConflictReason, modulesv1.DefaultConfigNotServedReason,
		modulesv1.ChannelOverriddenReason, modulesv1.VersionUnknownReason, modulesv1.AliasReason,
	} {
		found, ok := f.find(reason)
		if !ok {
			continue
		}
		if len(messages) == 0 {
			fact.Reason = reason
		}
		switch reason {
		case modulesv1.ModuleUnknownReason, modulesv1.ReleaseConflictReason, modulesv1.ChannelConflictReason:
			fact.Status = metav1.ConditionFalse
		default:
		}
		messages = append(messages, found.Message)
	}
	if len(messages) > 0 {
		fact.Message = cut(strings.Join(messages, "; "))
	}
	return fact
}

// Events implements kernel.Kind: a new problem, or the end of one.
func (k *templates) Events(before, after *modulesv1.ModuleTemplate, f finding, err error) []event.Event {
	about := event.About(after, modulesv1.GroupVersion.WithKind(modulesv1.ModuleTemplateKind))
	switch {
	case status.SaysTheSame(before, after):
		return nil
	case err != nil:
		_, reason := k.Table().Explain(err)
		return []event.Event{event.Failed(about, reason, err, after.Status.Revision)}
	case k.Table().HasFailed(before) && f.waiting == "":
		return []event.Event{event.Recovered(about, event.Artifact{Revision: after.Status.Revision, Digest: after.Status.Digest}, f.message())}
	default:
		return nil
	}
}
