package e2e

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// told waits for an event about the object.
func (s *scene) told(name, kind, reason, text string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%s: an event %s %s with %q", name, kind, reason, text), func(ctx context.Context) (bool, string) {
		events, err := s.events(ctx, name)
		if err != nil {
			return false, err.Error()
		}
		for _, event := range events {
			if event.Type == kind && event.Reason == reason && strings.Contains(event.Message, text) {
				return true, ""
			}
		}
		return false, summary(events)
	})
}

// toldNewArtifact waits for the event about an artifact of the revision. A process that takes up what another one stored
// knows the revision, but not the commit's subject.
func (s *scene) toldNewArtifact(name, revision string) {
	s.t.Helper()
	s.eventually(name+": an event about an artifact of "+revision, func(ctx context.Context) (bool, string) {
		events, err := s.events(ctx, name)
		if err != nil {
			return false, err.Error()
		}
		for _, event := range events {
			if event.Reason == sourcev1.NewArtifactReason && event.Annotations[sourcev1.GroupVersion.Group+"/revision"] == revision {
				return true, ""
			}
		}
		return false, summary(events)
	})
}

func (s *scene) events(ctx context.Context, name string) ([]corev1.Event, error) {
	var list corev1.EventList
	err := env.Client.List(ctx, &list, client.InNamespace(s.namespace), client.MatchingFields{"involvedObject.name": name})
	return list.Items, err
}

// summary is events with their counts, as people read them.
func summary(events []corev1.Event) string {
	var lines []string
	for _, event := range events {
		lines = append(lines, fmt.Sprintf("%s %s x%d: %s", event.Type, event.Reason, event.Count, event.Message))
	}
	return strings.Join(lines, "\n")
}

// eventNames is the events about an object with their versions, which grow with their counts.
func (s *scene) eventNames(name string) string {
	s.t.Helper()
	events, err := s.events(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	names := map[string]string{}
	for _, event := range events {
		names[event.Name] = event.ResourceVersion
	}
	return asJSON(names)
}
