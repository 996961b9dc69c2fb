package app

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"sluice.dev/sluice/internal/event"
)

// recordTimeout bounds one write of an event.
const recordTimeout = 10 * time.Second

// recorder writes events to the API server, one after the other and before it returns. The sink in front of it queues;
// client-go's own recorder would queue again, and lose what is in its queue when the process stops. Its correlator
// counts repeated events and limits floods.
type recorder struct {
	events     typedcorev1.EventsGetter
	correlator *record.EventCorrelator
	clock      clock.PassiveClock
	host       string
	log        logr.Logger
}

func newRecorder(mgr ctrl.Manager, host string) (*recorder, error) {
	client, err := typedcorev1.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client for events: %w", err)
	}
	return &recorder{
		events:     client,
		correlator: record.NewEventCorrelator(clock.RealClock{}),
		clock:      clock.RealClock{},
		host:       host,
		log:        ctrl.Log.WithName("events"),
	}, nil
}

// AnnotatedEventf implements event.Recorder.
func (r *recorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, kind, reason, format string, args ...any) {
	about, ok := object.(*corev1.ObjectReference)
	if !ok {
		return
	}
	now, reporter := metav1.NewTime(r.clock.Now()), event.Reporter(about.GroupVersionKind().Group)
	told := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name:      fmt.Sprintf("%s.%x", about.Name, now.UnixNano()),
			Namespace: about.Namespace, Annotations: annotations,
		},
		InvolvedObject: *about, Type: kind, Reason: reason, Message: fmt.Sprintf(format, args...),
		Source: corev1.EventSource{Component: reporter, Host: r.host}, ReportingController: reporter, ReportingInstance: r.host,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	if err := r.write(ctx, told); err != nil {
		r.log.Error(err, "event not recorded", "namespace", about.Namespace, "name", about.Name, "reason", reason)
	}
}

// write counts the event up when it is like one that was recorded already, and creates it otherwise.
func (r *recorder) write(ctx context.Context, event *corev1.Event) error {
	result, err := r.correlator.EventCorrelate(event)
	if err != nil {
		return fmt.Errorf("correlate event: %w", err)
	}
	if result.Skip {
		return nil
	}
	events, event := r.events.Events(event.Namespace), result.Event
	recorded, err := event, error(nil)
	if event.Count > 1 {
		recorded, err = events.Patch(ctx, event.Name, types.StrategicMergePatchType, result.Patch, metav1.PatchOptions{})
	}
	if event.Count <= 1 || err != nil {
		// What is to be counted up may have expired.
		event.ResourceVersion = ""
		recorded, err = events.Create(ctx, event, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	r.correlator.UpdateState(recorded)
	return nil
}
