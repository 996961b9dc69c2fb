package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"

	"sluice.dev/sluice/internal/engine/cluster"
)

const (
	// lists is how many lists run at once.
	lists = 8
	// renew is how long the API server is asked to keep a watch open. A right that was taken away is noticed then at the
	// latest.
	renew = 30 * time.Minute
	// page is how many objects a list answers at once.
	page = 500
	// answerTimeout is how long the API server may take to answer a list, or to open a watch.
	answerTimeout = time.Minute
	// quick is how soon a watch that told nothing may end without being taken for a failure.
	quick = 10 * time.Second
	// gather is how long to wait before a list that joining owners ask for, so that one serves many.
	gather = 100 * time.Millisecond
	// hiccups is how many failures in a row are no problem yet where the API server is merely away.
	hiccups = 3
	// patience is the least time between attempts, however often Retry is called.
	patience = time.Second
)

// errJoined asks for a list because an owner joined of which objects were seen and not kept.
var errJoined = errors.New("an owner joined")

// run follows the subject until the context ends.
func (s *subjectWatch) run(ctx context.Context) {
	failures := 0
	for {
		began := s.watcher.options.Clock.Now()
		listed, err := s.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errJoined) {
			s.pause(ctx, gather)
			continue
		}
		if listed && (!expired(err) || s.watcher.options.Clock.Since(began) > quick) {
			failures = 0
		}
		if failures++; failures > hiccups || reasonOf(err) != Unreachable || s.trouble() != nil {
			s.fail(err)
		}
		if delay := reasonOf(err).delay(failures); failures > 1 || !expired(err) {
			s.pause(ctx, delay)
		}
	}
}

// pause waits, less long if Retry is called.
func (s *subjectWatch) pause(ctx context.Context, delay time.Duration) {
	least := min(delay, patience)
	if !s.sleep(ctx, least, nil) {
		return
	}
	s.sleep(ctx, delay-least, s.wake)
}

// sleep says whether the time passed.
func (s *subjectWatch) sleep(ctx context.Context, delay time.Duration, wake <-chan struct{}) bool {
	if delay <= 0 {
		return ctx.Err() == nil
	}
	timer := s.watcher.options.Clock.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
		return false
	case <-timer.C():
		return true
	}
}

// follow lists the subject and follows its changes until it has to be listed again, which is what the error says.
// listed says whether it came past the list.
func (s *subjectWatch) follow(ctx context.Context) (listed bool, err error) {
	resource, err := s.resource()
	if err != nil {
		return false, err
	}
	stream, cursor, err := s.begin(ctx, resource)
	if err != nil {
		return false, err
	}
	failures := 0
	for {
		if stream == nil {
			stream, err = s.watch(ctx, resource, cursor)
		}
		progress := false
		if err == nil {
			began, before := s.watcher.options.Clock.Now(), cursor
			cursor, err = s.read(ctx, stream, cursor)
			stream.Stop()
			stream, progress = nil, cursor != before || s.watcher.options.Clock.Since(began) > quick
		}
		if err != nil && (ctx.Err() != nil || errors.Is(err, errJoined) || expired(err) || reasonOf(err) != Unreachable) {
			return true, err
		}
		if progress {
			failures = 0
			continue
		}
		// The API server is away, or ends watches at once. What is remembered stays; the next watch tells the rest.
		failures++
		s.pause(ctx, Unreachable.delay(failures))
	}
}

// resource opens the API server for the identity.
func (s *subjectWatch) resource() (metadata.ResourceInterface, error) {
	client, mapping, err := s.watcher.options.Connect(s.subject.Identity, s.subject.GVK)
	if err != nil {
		return nil, err
	}
	if namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace; namespaced != (s.subject.Namespace != "") {
		return nil, fmt.Errorf("%w: namespace %q for kind %q, scope %q", errScope,
			s.subject.Namespace, s.subject.GVK.Kind, mapping.Scope.Name())
	}
	return client.Resource(mapping.Resource).Namespace(s.subject.Namespace), nil
}

// begin lists the subject and opens a watch from there. Only when both succeed is the subject known.
func (s *subjectWatch) begin(ctx context.Context, resource metadata.ResourceInterface) (apiwatch.Interface, string, error) {
	select {
	case <-ctx.Done():
		return nil, "", ctx.Err()
	case s.watcher.lists <- struct{}{}:
	}
	defer func() { <-s.watcher.lists }()
	// Owners that joined up to here are served by this list.
	select {
	case <-s.again:
	default:
	}
	objects, cursor, err := s.list(ctx, resource)
	if err != nil {
		return nil, "", err
	}
	stream, err := s.watch(ctx, resource, cursor)
	if err != nil {
		return nil, "", err
	}
	s.paged = true
	s.tell(s.commit(objects, cursor))
	return stream, cursor, nil
}

func (s *subjectWatch) list(ctx context.Context, resource metadata.ResourceInterface) (map[string]*Meta, string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	objects, selection := map[string]*Meta{}, metav1.ListOptions{LabelSelector: cluster.PartOf}
	if s.paged {
		selection.Limit = page
	}
	for {
		list, err := resource.List(ctx, selection)
		if err != nil {
			// A list that takes longer than the API server remembers its version is asked for in one piece.
			s.paged = s.paged && !expired(err)
			return nil, "", err
		}
		for i := range list.Items {
			objects[list.Items[i].Name] = remember(&list.Items[i])
		}
		if selection.Continue = list.Continue; selection.Continue == "" {
			return objects, list.ResourceVersion, nil
		}
	}
}

// watch opens a stream of changes after the cursor.
func (s *subjectWatch) watch(ctx context.Context, resource metadata.ResourceInterface, cursor string) (apiwatch.Interface, error) {
	selection := metav1.ListOptions{
		LabelSelector: cluster.PartOf, ResourceVersion: cursor, AllowWatchBookmarks: true,
		// The API server ends the watch then; the deadline here is for one that does not.
		TimeoutSeconds: new(int64(renew.Seconds())),
	}
	ctx, cancel := context.WithTimeout(ctx, renew+answerTimeout)
	unanswered := time.AfterFunc(answerTimeout, cancel)
	stream, err := resource.Watch(ctx, selection)
	if err != nil || !unanswered.Stop() {
		cancel()
		if err == nil {
			stream.Stop()
			err = context.DeadlineExceeded
		}
		return nil, err
	}
	return &cancelling{Interface: stream, cancel: cancel}, nil
}

// cancelling is a stream that ends its request's context when it is stopped.
type cancelling struct {
	apiwatch.Interface
	cancel context.CancelFunc
}

func (c *cancelling) Stop() {
	c.cancel()
	c.Interface.Stop()
}

// read takes what the stream tells until it ends, and returns where to go on.
func (s *subjectWatch) read(ctx context.Context, stream apiwatch.Interface, cursor string) (string, error) {
	for {
		select {
		case <-ctx.Done():
			return cursor, ctx.Err()
		case <-s.again:
			return cursor, errJoined
		case event, open := <-stream.ResultChan():
			if !open {
				return cursor, nil
			}
			if event.Type == apiwatch.Error {
				return cursor, apierrors.FromObject(event.Object)
			}
			object, ok := event.Object.(*metav1.PartialObjectMetadata)
			if !ok {
				return cursor, fmt.Errorf("read a watch: unexpected %T", event.Object)
			}
			cursor = object.ResourceVersion
			if event.Type != apiwatch.Bookmark {
				s.tell(s.change(object, event.Type == apiwatch.Deleted))
			}
		}
	}
}
