package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sluice.dev/sluice/internal/engine"
	"sluice.dev/sluice/internal/view"
)

// occurrences are the events of an object and of all on its road, the oldest first.
type occurrences struct {
	Object ref         `json:"object"`
	Events []happening `json:"events"`
}

// chronicler is one call of events.
type chronicler struct {
	*base

	since time.Duration
	watch bool

	told occurrences
	// road are the objects of interest. One that comes later is one if its owner is; foreign are those that are not.
	road    map[types.UID]ref
	foreign map[types.UID]bool
	// label is what members have, where it is an installation; a new one is of interest too.
	label string
	// seen are the events that were shown, and as what.
	seen map[types.UID]string
}

func eventsCommand(b *base) *cobra.Command {
	c := &chronicler{base: b, road: map[types.UID]ref{}, foreign: map[types.UID]bool{}, seen: map[types.UID]string{}}
	command := &cobra.Command{
		Use:   "events [KIND] NAME | KIND/NAME",
		Short: "Show what happened to an object, to what it comes from and to what is made of it, by time",
		Example: `  sluice events redis -n team-a
  sluice events redis -w
  sluice events gitrepository/app --since 10m`,
		ValidArgsFunction: b.complete(kindNames()),
	}
	shown := bindAnswers(command)
	command.Flags().DurationVar(&c.since, "since", 0, "Show what happened within this time. 0 shows all that is kept.")
	command.Flags().BoolVarP(&c.watch, "watch", "w", false, "Go on with what happens from now on.")
	return b.on(command, func(ctx context.Context, args []string) error {
		k, name, err := one(args)
		if err != nil {
			return err
		}
		if c.watch && !isText(shown.output) {
			return usage("--watch shows lines", "leave out -o")
		}
		namespaces, lacking := c.read(ctx, k, name)
		if namespaces == nil {
			return lacking
		}
		switch {
		case c.watch && lacking != nil:
			// Whoever looks on is not told at the end alone.
			fmt.Fprintln(c.ErrOut, lacking)
		case len(c.told.Events) == 0 && lacking == nil && !c.watch:
			fmt.Fprintln(c.ErrOut, "No event is kept of it.")
		}
		made := newTable(c.Out, shown.wide())
		to := &columns{out: c.Out}
		err = shown.show(c.Out, "Events", c.told, func(table) error { return printHappened(made, to, c.told.Events, true) })
		if err == nil && c.watch && len(namespaces) > 0 {
			return c.goOn(ctx, made, to, namespaces)
		}
		return errors.Join(err, lacking)
	})
}

// read reads the tree of the object, and the events of its namespaces. It gives those of which they could be read; nil where the object
// could not be.
func (c *chronicler) read(ctx context.Context, k kind, name string) (namespaces []string, lacking error) {
	tree, lacking := c.grow(ctx, k, name)
	if tree.root == nil {
		return nil, lacking
	}
	c.told.Object = tree.object
	if k.resource == kinds()[0].resource {
		c.label = engine.InstallationID(name, c.namespace)
	}
	spaces := map[string]bool{}
	concerns := func(n *view.Node) {
		if n.UID != "" {
			c.road[n.UID] = ref{n.Kind, n.Namespace, n.Name}
			spaces[cmp.Or(n.Namespace, metav1.NamespaceDefault)] = true // What has no namespace has its events in the default one.
		}
	}
	tree.root.Walk(concerns)
	for _, t := range tree.road {
		concerns(nodeOf(t.kind, t.obj))
	}
	namespaces = []string{}
	for _, namespace := range slices.Sorted(maps.Keys(spaces)) {
		found, err := c.session.told(ctx, namespace, func(event *corev1.Event) (ref, bool) {
			c.seen[event.UID] = event.ResourceVersion
			of, known := c.road[event.InvolvedObject.UID]
			return of, known
		})
		c.told.Events, lacking = append(c.told.Events, found...), errors.Join(lacking, err)
		if err == nil {
			namespaces = append(namespaces, namespace)
		}
	}
	earliest := time.Now().Add(-c.since)
	c.told.Events = slices.DeleteFunc(c.told.Events, func(h happening) bool { return c.since > 0 && h.Last.Before(earliest) })
	slices.SortStableFunc(c.told.Events, func(a, b happening) int { return a.Last.Compare(b.Last) })
	return namespaces, lacking
}

// goOn shows what happens from now on, in all of the namespaces.
func (c *chronicler) goOn(ctx context.Context, made table, to *columns, namespaces []string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	news, ends := make(chan *corev1.Event), make(chan error, len(namespaces))
	for _, namespace := range namespaces {
		go func() { ends <- c.follow(ctx, newsOf(ctx, namespace, news)) }()
	}
	for {
		select {
		case err := <-ends:
			return ended("watch events", err)
		case event := <-news:
			of, concerned := c.concerned(ctx, &event.InvolvedObject)
			if !concerned || c.seen[event.UID] == event.ResourceVersion {
				continue
			}
			c.seen[event.UID] = event.ResourceVersion
			if err := printHappened(made, to, []happening{happeningOf(of, event)}, true); err != nil {
				return unprinted(err)
			}
		}
	}
}

// newsOf follows the events of a namespace.
func newsOf(ctx context.Context, namespace string, news chan<- *corev1.Event) follower {
	change := func(obj *unstructured.Unstructured, gone bool) error {
		event := &corev1.Event{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, event); err != nil || gone {
			return nil //nolint:nilerr // What is no event tells nothing.
		}
		select {
		case news <- event:
		case <-ctx.Done():
			return ctx.Err()
		}
		return nil
	}
	return follower{
		kind:    kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Event")},
		options: func() *client.ListOptions { return &client.ListOptions{Namespace: namespace} },
		list: func(found []unstructured.Unstructured) error {
			for i := range found {
				if err := change(&found[i], false); err != nil {
					return err
				}
			}
			return nil
		},
		change: change,
	}
}

// concerned says whether what an event is about is on the road: also a member that has come since, and what was made by something that is.
func (c *chronicler) concerned(ctx context.Context, about *corev1.ObjectReference) (ref, bool) {
	of := ref{about.Kind, about.Namespace, about.Name}
	if _, known := c.road[about.UID]; known || c.foreign[about.UID] {
		return of, known
	}
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(about.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKey{Namespace: about.Namespace, Name: about.Name}, obj)
	if err == nil && obj.UID == about.UID && c.label != "" && obj.Labels[engine.Label] == c.label {
		c.road[about.UID] = of
		return of, true
	}
	owner := metav1.GetControllerOf(obj)
	if err != nil || obj.UID != about.UID || owner == nil {
		c.foreign[about.UID] = err == nil
		return of, false
	}
	above := &corev1.ObjectReference{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: about.Namespace, Name: owner.Name, UID: owner.UID}
	// Objects may own each other.
	c.foreign[about.UID] = true
	if _, known := c.concerned(ctx, above); !known {
		return of, false
	}
	delete(c.foreign, about.UID)
	c.road[about.UID] = of
	return of, true
}
