package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// happening is one thing that was told of an object, as Kubernetes keeps it for an hour.
type happening struct {
	About   ref       `json:"about"`
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
	Count   int32     `json:"count"`
}

// ref names an object.
type ref struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is how the object is called in text.
func (r ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// happened lists what was told of the object, the oldest first. What was told of an earlier one of its name, or of one of another
// group, has another uid.
func (s *session) happened(ctx context.Context, of ref, uid types.UID) ([]happening, error) {
	selected := fields.Set{"involvedObject.kind": of.Kind, "involvedObject.name": of.Name}
	var list corev1.EventList
	var all []happening
	for {
		options := []client.ListOption{client.InNamespace(of.Namespace), client.MatchingFieldsSelector{Selector: selected.AsSelector()}, client.Limit(chunk), client.Continue(list.Continue)}
		list = corev1.EventList{}
		if err := s.List(ctx, &list, options...); err != nil {
			return nil, explain(fmt.Sprintf("list the events of %s", of), err, "view")
		}
		for i := range list.Items {
			if about := list.Items[i].InvolvedObject.UID; about == "" || about == uid {
				all = append(all, happeningOf(of, &list.Items[i]))
			}
		}
		if list.Continue == "" {
			break
		}
	}
	slices.SortStableFunc(all, func(a, b happening) int { return a.Last.Compare(b.Last) })
	return all, nil
}

// happeningOf reads an event of either of the two ways in which they are written.
func happeningOf(of ref, event *corev1.Event) happening {
	told := happening{About: of, Type: event.Type, Reason: event.Reason, Message: event.Message, Count: max(1, event.Count)}
	told.First = firstTime(event.FirstTimestamp.Time, event.EventTime.Time, event.CreationTimestamp.Time)
	told.Last = firstTime(event.LastTimestamp.Time, event.EventTime.Time, told.First)
	if event.Series != nil {
		told.Count, told.Last = max(told.Count, event.Series.Count), event.Series.LastObservedTime.Time
	}
	return told
}

// firstTime is the first that is known.
func firstTime(times ...time.Time) time.Time { return cmp.Or(times...) }
