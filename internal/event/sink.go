package event

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"sluice.dev/sluice/internal/printable"
)

// Recorder is what the sink needs of client-go's event recorder.
type Recorder interface {
	AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any)
}

// Options tune a sink.
type Options struct {
	Recorder   Recorder // delivers to Kubernetes; nil tells Kubernetes nothing
	EventsAddr string   // http or https URL that takes POSTs of Flux events; empty posts nothing
	Instance   string   // the reportingInstance of posts, the host's name; empty leaves it out

	QueueSize    int           // events that may wait for each of the two readers; zero means 1024
	QueueBytes   int           // about the bytes these may hold; zero means 16 MiB
	DrainTimeout time.Duration // how long Run delivers after its context ends; zero means 5 s

	Attempts       int           // requests for one event; zero means 5
	AttemptTimeout time.Duration // for one request, by the wall clock; zero means 5 s
	PostTimeout    time.Duration // for all requests of one event and the pauses between; zero means 30 s
	RetryWait      time.Duration // the first pause, doubled each time up to 10 s; zero means 1 s

	Clock      clock.WithDelayedExecution // nil means the real one
	HTTPClient *http.Client               // its transport is used, its redirect policy is not; nil means one of the sink's own
	Logger     logr.Logger                // the zero value discards
}

func (o Options) withDefaults() Options {
	o.QueueSize = cmp.Or(o.QueueSize, 1024)
	o.QueueBytes = cmp.Or(o.QueueBytes, 16<<20)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, 5*time.Second)
	o.Attempts = cmp.Or(o.Attempts, 5)
	o.AttemptTimeout = cmp.Or(o.AttemptTimeout, 5*time.Second)
	o.PostTimeout = cmp.Or(o.PostTimeout, 30*time.Second)
	o.RetryWait = cmp.Or(o.RetryWait, time.Second)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// postWorkers are the posts under way at once. They are of different objects, so that one that hangs holds up neither
// the order of another's events nor their delivery.
const postWorkers = 4

// Sink delivers events in the background. It collects what it counts of them.
type Sink struct {
	prometheus.Collector
	counters

	options  Options
	receiver *receiver // nil without an address
	queues   map[string]*queue
}

// New makes a sink. Events may be emitted at once; they wait until Run delivers them. The error is about the address.
func New(o Options) (*Sink, error) {
	measured := newCounters()
	s := &Sink{Collector: measured.registry, counters: measured, options: o.withDefaults(), queues: make(map[string]*queue)}
	if o.Recorder != nil {
		s.listen(readerKubernetes)
	}
	if o.EventsAddr != "" {
		var err error
		if s.receiver, err = newReceiver(s.options); err != nil {
			return nil, err
		}
		s.listen(readerReceiver)
	}
	return s, nil
}

func (s *Sink) listen(reader string) {
	s.queues[reader] = newQueue(s.options.QueueSize, s.options.QueueBytes)
	s.watch(reader, s.queues[reader])
}

// Emit queues an event and returns at once; it cannot fail. When a reader's queue is full, the oldest events in it,
// of the namespace that has the most, are dropped and counted. An event that is equal in all but its time to its object's last one still waiting is merged
// with that.
func (s *Sink) Emit(e Event) {
	e.Message = clean(e.Message)
	s.emitted.WithLabelValues(string(e.Type)).Inc()
	now := s.options.Clock.Now()
	for reader, q := range s.queues {
		if e.Trace && reader == readerReceiver {
			continue
		}
		s.count(reader, q.put(e, now))
	}
}

func (s *Sink) count(reader string, f fate) {
	if f.merged {
		s.merged.WithLabelValues(reader).Inc()
	}
	s.dropped.WithLabelValues(reader).Add(float64(f.dropped))
	if f.overflow {
		s.options.Logger.Info("events are dropped: the reader is slower than the news", "reader", reader)
	}
}

// Run delivers until ctx ends and then, for at most the drain timeout, what is still queued. What is left is dropped
// and counted, and the posts under way are broken off. It returns nil; it can be run once.
func (s *Sink) Run(ctx context.Context) error {
	posting, stopPosting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopPosting()

	var recording, posts sync.WaitGroup
	if q, ok := s.queues[readerKubernetes]; ok {
		recording.Go(func() { work(q, s.record) })
	}
	if q, ok := s.queues[readerReceiver]; ok {
		for range postWorkers {
			posts.Go(func() { work(q, func(item queued) { s.post(posting, item) }) })
		}
	}
	delivered := make(chan struct{})
	go func() {
		recording.Wait()
		posts.Wait()
		close(delivered)
	}()

	<-ctx.Done()
	for _, q := range s.queues {
		q.close()
	}
	deadline := s.options.Clock.NewTimer(s.options.DrainTimeout)
	defer deadline.Stop()
	select {
	case <-delivered:
	case <-deadline.C():
		for reader, q := range s.queues {
			s.dropped.WithLabelValues(reader).Add(float64(q.discard()))
		}
		// A recorder that hangs cannot be broken off, so it is not waited for.
		stopPosting()
		posts.Wait()
	}
	return nil
}

func work(q *queue, deliver func(queued)) {
	for {
		item, ok := q.take()
		if !ok {
			return
		}
		deliver(item)
		q.done(item)
	}
}

func (s *Sink) record(item queued) {
	// The recorder keeps the map, which the receiver's worker may be reading.
	s.options.Recorder.AnnotatedEventf(&item.Object, maps.Clone(item.Metadata), string(item.Type), item.Reason, "%s",
		printable.Cut(item.Message, maxKubernetesMessage))
}

// errTooSlow ends a post that used up the time one event is given.
var errTooSlow = errors.New("the receiver did not take the event in time")

func (s *Sink) post(ctx context.Context, item queued) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := s.options.Clock.AfterFunc(s.options.PostTimeout, func() {
		cancel(fmt.Errorf("%w: %s", errTooSlow, s.options.PostTimeout))
	})
	defer limit.Stop()

	answer, err := s.receiver.post(ctx, item)
	if err != nil {
		s.postErrors.Inc()
		s.options.Logger.Error(err, "event not posted", "kind", item.Object.Kind,
			"namespace", item.Object.Namespace, "name", item.Object.Name, "reason", item.Reason)
		return
	}
	s.posted.WithLabelValues(answer).Inc()
}
