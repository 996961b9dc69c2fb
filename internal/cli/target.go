package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// manager is whose fields the commands write are.
const manager = client.FieldOwner("sluice-cli")

// target is an object that a command acts on, or waits for.
type target struct {
	kind

	namespace, name string
	// obj is the object as it was seen last; nil if it is not b.
	obj *unstructured.Unstructured
	// first is the object as it was found, before anything was done.
	first *unstructured.Unstructured
	// from are the targets that this one takes from.
	from []*target

	// asked is when it was asked for, and token what it was asked with.
	asked time.Time
	token string
	// verdict is what became of it, at how it is, and told what was told of that.
	verdict  verdict
	at, told string
}

func newTarget(k kind, namespace, name string) *target {
	return &target{kind: k, namespace: namespace, name: name}
}

// String is how the target is called in messages.
func (t *target) String() string { return fmt.Sprintf("%s %s/%s", t.Kind, t.namespace, t.name) }

// typed is how the target is typed.
func (t *target) typed() string { return strings.ToLower(t.Kind) + "/" + t.name + " -n " + t.namespace }

// selection says which objects are meant: those that are named, or those of the kind in the namespace.
type selection struct {
	// can says which kinds may be meant, and cannot what is said of the others.
	can    func(kind) bool
	cannot string
	// absenceWillDo says that what is not there is found too, without its object.
	absenceWillDo bool

	all      bool
	labelled string
}

func (s *selection) bind(command *cobra.Command) {
	command.Flags().BoolVar(&s.all, "all", false, "Take all objects of the kind in the namespace.")
	command.Flags().StringVarP(&s.labelled, "selector", "l", "", "Take the objects with these labels.")
}

// named says that the objects are named one by one.
func (s *selection) named() bool { return !s.all && s.labelled == "" }

// find finds all that is meant, or says why not: nothing is done for one object while another one is not there.
func (s *selection) find(ctx context.Context, b *base, args []string) ([]*target, error) {
	asked, selector, err := s.read(args)
	if err != nil {
		return nil, err
	}
	var found []*target
	var problems []error
	for _, one := range asked {
		more, errs := s.these(ctx, b, one, selector)
		found, problems = append(found, more...), append(problems, errs...)
	}
	if len(found) == 0 && len(problems) == 0 {
		if len(asked) > 0 {
			err = b.unfounded(ctx)
		}
		if err == nil {
			s.none(b)
		}
		return nil, err
	}
	for _, t := range found {
		t.first = t.obj
	}
	return found, errors.Join(problems...)
}

// these are the objects of one kind that are meant.
func (s *selection) these(ctx context.Context, b *base, one wanted, selector labels.Selector) (found []*target, problems []error) {
	for _, name := range slices.Compact(slices.Sorted(slices.Values(one.names))) {
		t := newTarget(one.kind, b.namespace, name)
		var err error
		t.obj, err = b.named(ctx, one.kind, name)
		if absent, ok := errors.AsType[*CommandError](err); err != nil && (!ok || !absent.missing || !s.absenceWillDo) {
			problems = append(problems, err)
		}
		found = append(found, t)
	}
	if len(one.names) > 0 {
		return found, problems
	}
	list, err := b.listAll(ctx, one.kind, client.InNamespace(b.namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		problems = append(problems, explain(fmt.Sprintf("list %s in namespace %s", one.kind.resource, b.namespace), err, "sluice-view"))
	}
	for i := range list {
		t := newTarget(one.kind, b.namespace, list[i].GetName())
		t.obj = &list[i]
		found = append(found, t)
	}
	return found, problems
}

// read reads which objects are meant, and refuses what says so twice, or not at all.
func (s *selection) read(args []string) ([]wanted, labels.Selector, error) {
	asked, err := parse(args)
	if err == nil {
		asked, err = s.capable(asked)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, one := range asked {
		switch isNamed := len(one.names) > 0; {
		case isNamed && !s.named():
			return nil, nil, usage("objects are named, and --all or -l asks for others", "leave one of them out")
		case !isNamed && s.named():
			return nil, nil, usage("no object is named", "name some, or ask for all of the kind in the namespace with --all, or for some of them with -l")
		}
	}
	selector, err := labels.Parse(s.labelled)
	if err != nil {
		return nil, nil, usage("--selector: " + err.Error())
	}
	return asked, selector, nil
}

// capable keeps the kinds that can, of several that were asked for as one. Who asks for others is told which can.
func (s *selection) capable(asked []wanted) ([]wanted, error) {
	var able []wanted
	for i, one := range asked {
		switch {
		case s.can(one.kind):
			able = append(able, one)
		case len(one.names) > 0 || i == len(asked)-1 && len(able) == 0:
			var names []string
			for _, k := range kinds() {
				if s.can(k) {
					names = append(names, k.resource)
				}
			}
			return nil, usage(one.kind.resource+" "+s.cannot, "this is for "+list(names))
		}
	}
	return able, nil
}

// none says that nothing was meant.
func (s *selection) none(b *base) {
	labelled := ""
	if s.labelled != "" {
		labelled = " with these labels"
	}
	fmt.Fprintf(b.ErrOut, "There are none in namespace %s%s.\n", b.namespace, labelled)
}
