package cli

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"sluice.dev/sluice/internal/printable"
)

const (
	// qps and burst bound the requests of one command.
	qps, burst = 50, 300
	// chunk is how many objects a LIST brings at once.
	chunk = 500
)

// session is a command's view of the API server.
type session struct {
	client.WithWatch

	// core asks for what is no object, such as the log of a pod.
	core typedcorev1.CoreV1Interface
	// rest is how the API server is reached.
	rest *rest.Config
	// namespace is the one of the flag, else of the context.
	namespace string
}

// newSession reads the kubeconfig, and asks the API server nothing yet.
func newSession(flags *genericclioptions.ConfigFlags, scheme *runtime.Scheme, hints io.Writer) (*session, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, explain("read the kubeconfig", err, "")
	}
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, explain("read the kubeconfig", err, "")
	}
	discovered, err := flags.ToRESTMapper()
	if err != nil {
		return nil, explain("reach the API server", err, "")
	}
	config.QPS, config.Burst = qps, burst
	config.UserAgent = "sluice"
	config.WarningHandler = &warnings{to: hints, told: map[string]bool{}}
	made, err := connect(config, scheme, mapper(discovered))
	if err != nil {
		return nil, err
	}
	return made.in(namespace), nil
}

// connect makes a session with the API server.
func connect(config *rest.Config, scheme *runtime.Scheme, known meta.RESTMapper) (*session, error) {
	made, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: known})
	if err != nil {
		return nil, explain("reach the API server", err, "")
	}
	core, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, explain("reach the API server", err, "")
	}
	return &session{WithWatch: made, core: core, rest: config}, nil
}

// in is the same session in the namespace.
func (s *session) in(namespace string) *session {
	there := *s
	there.namespace = namespace
	return &there
}

// discoveryTime is how long the API server may take to say which kinds it has. Who else asks for a kind that is not known yet waits as long.
const discoveryTime = 5 * time.Second

// lasting is the same session for a command that goes on for long: kinds that come meanwhile are asked for anew when they are missed,
// where the one of kubectl's flags remembers what there was.
func (s *session) lasting(scheme *runtime.Scheme) (*session, error) {
	bounded := rest.CopyConfig(s.rest)
	bounded.Timeout = discoveryTime
	wire, err := rest.HTTPClientFor(bounded)
	if err != nil {
		return nil, explain("reach the API server", err, "")
	}
	discovered, err := apiutil.NewDynamicRESTMapper(bounded, wire)
	if err != nil {
		return nil, explain("reach the API server", err, "")
	}
	made, err := connect(s.rest, scheme, mapper(discovered))
	if err != nil {
		return nil, err
	}
	return made.in(s.namespace), nil
}

// warnings tells each warning of the API server once.
type warnings struct {
	to   io.Writer
	mu   sync.Mutex
	told map[string]bool
}

// HandleWarningHeader implements rest.WarningHandler. Code 299 is that of Kubernetes' warnings.
func (w *warnings) HandleWarningHeader(code int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if code != 299 || text == "" || w.told[text] {
		return
	}
	w.told[text] = true
	fmt.Fprintln(w.to, "Warning: "+printable.Line(text, maxProblem))
}

// listAll lists the kind's objects.
func (s *session) listAll(ctx context.Context, k kind, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	err := eachChunk(kept(ctx), s, k.list, func(list *unstructured.UnstructuredList, first bool) {
		if first {
			all = nil
		}
		all = append(all, list.Items...)
	}, options...)
	return all, err
}

// eachChunk reads a list chunk by chunk, and has each taken; the first one may come anew. Where the API server has forgotten
// by the next chunk what it listed, it is asked for all of them at once.
func eachChunk[L client.ObjectList](ctx context.Context, s *session, fresh func() L, take func(list L, first bool), options ...client.ListOption) error {
	next, limit := "", int64(chunk)
	for {
		list := fresh()
		err := s.List(ctx, list, append(options, client.Limit(limit), client.Continue(next))...)
		if next != "" && apierrors.IsResourceExpired(err) {
			next, limit = "", 0
			continue
		}
		if err != nil {
			return fmt.Errorf("list: %w", err)
		}
		take(list, next == "")
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}
