package function

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/memory"
)

var (
	// ErrUntrusted says that nobody who is trusted has signed a function.
	ErrUntrusted = errors.New("the function is not trusted")
	// ErrUnavailable says that a function cannot be had for now; it may be the next time.
	ErrUnavailable = errors.New("the function is not available")
)

// Custom has functions beside those of Names, and decides which of them may run. They are known by their whole images.
type Custom interface {
	// Fingerprint is another one whenever other functions may run.
	Fingerprint() string
	// Check is nil for an image whose function may run, and otherwise says what there is to do. It is quick.
	Check(image string) error
	// Run runs a function. Errors are ErrUnknownFunction, ErrUntrusted, ErrUnavailable, ErrTimeout, what else is wrong with it, and
	// besides those of memory and the cause of the context's end. One with a method Written() []byte has what the function
	// had written when it failed.
	Run(ctx context.Context, call Call) error
}

// Call is what a function of a Custom is to do: it gets a ResourceList, and writes one.
type Call struct {
	Image string
	Input []byte
	// Output is given what the function has written, once, when it has ended well; it draws from the context's account.
	Output func(ctx context.Context, output []byte) error
}

// maxFailure is how much of what a function wrote before it failed is read.
const maxFailure = 64 << 10

// pinned is an image that is known by its content.
var pinned = regexp.MustCompile(`^[^\s@]+/[^\s@]+@sha256:[0-9a-f]{64}$`)

// lookup finds the function of an entry among those that there are, and then among those of others.
func (g *rendering) lookup(folder string, entry *kpt.Function, validate bool) (string, function, error) {
	name, do, err := lookup(entry.Image, entry.Exec)
	switch {
	case err == nil || entry.Exec != "" || g.options.Custom == nil:
		return name, do, err
	case !pinned.MatchString(entry.Image):
		return name, nil, fmt.Errorf("%w; another one is named as registry/repository@sha256:digest", err)
	}
	if err := g.options.Custom.Check(entry.Image); err != nil {
		return name, nil, err
	}
	return name, g.custom(folder, entry.Image, validate), nil
}

// isCustom tells whether the entry's function is none of this package's.
func isCustom(entry *kpt.Function) bool {
	_, found := functions()[kpt.ImageName(entry.Image)]
	return !found
}

// custom is a function that somebody else runs. What it makes of its objects is put in their place, so that whatever it did not
// change stays as it was written.
func (g *rendering) custom(folder, image string, validate bool) function {
	return func(ctx context.Context, r *run) error {
		list := &resourceList{folder: folder, run: r}
		// It reads a copy of everything, which is made of nodes first.
		cost := int64(0)
		for _, o := range r.objects {
			cost += perNode*count(o.root) + 2*size(o.root)
		}
		if err := memory.Draw(ctx, cost); err != nil {
			return err
		}
		defer memory.Return(ctx, cost)
		input, err := list.encode()
		if err != nil {
			return err
		}
		err = g.options.Custom.Run(ctx, Call{Image: image, Input: input, Output: func(ctx context.Context, output []byte) error {
			// What is read lasts until the objects are in their places.
			if err := memory.Draw(ctx, perNode*values(output)+2*int64(len(output))); err != nil {
				return err
			}
			written, err := readList(output, g.options)
			if err != nil {
				return fmt.Errorf("its output: %w", err)
			}
			if err := r.tell(written.results); err != nil || validate {
				return err
			}
			return list.apply(ctx, written.items)
		}})
		return g.failed(r, err)
	}
}

// failed is what a function that failed says of the objects, if it does: that is more than what it says when it ends.
func (g *rendering) failed(r *run, err error) error {
	var failed interface{ Written() []byte }
	if !errors.As(err, &failed) || len(failed.Written()) > maxFailure {
		return err
	}
	if written, unread := readList(failed.Written(), g.options); unread == nil {
		if told := r.tell(written.results); told != nil {
			return told
		}
	}
	return err
}

// writtenList is what a function has written.
type writtenList struct {
	items   []*yaml.Node
	results []*yaml.Node
}

// readList reads the output of a function: one ResourceList and nothing else.
func readList(output []byte, limits Options) (writtenList, error) {
	if most := values(output); most > limits.MaxNodes {
		return writtenList{}, fmt.Errorf("%w: it has some %d values, and %d are allowed", ErrTooLarge, most, limits.MaxNodes)
	}
	root, err := parseOne(output)
	if err != nil {
		return writtenList{}, err
	}
	if kind, version := kpt.Text(root, "kind"), kpt.Text(root, "apiVersion"); kind != listKind || version != listVersion {
		return writtenList{}, fmt.Errorf("it is %s of %s, and has to be a %s of %s", orNothing(kind), orNothing(version), listKind, listVersion)
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		switch key := root.Content[i].Value; key {
		case "apiVersion", "kind", "metadata", "items", "functionConfig", "results":
		default:
			return writtenList{}, fmt.Errorf("%.100q is no field of a %s", key, listKind)
		}
	}
	items := kpt.Lookup(root, "items")
	if !isNull(items) && items.Kind != yaml.SequenceNode {
		return writtenList{}, errors.New("items: is no list")
	}
	if there := len(kpt.Elements(items)); there > limits.MaxItems {
		return writtenList{}, fmt.Errorf("%w: it has %d objects, and %d are allowed", ErrTooLarge, there, limits.MaxItems)
	}
	return writtenList{items: kpt.Elements(items), results: kpt.Elements(kpt.Lookup(root, "results"))}, nil
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return fmt.Sprintf("%.100q", text)
}

// maxResult bounds one remark of a function.
const maxResult = 300

// tell keeps what the function has to say of the objects, and fails if that is an error.
func (r *run) tell(results []*yaml.Node) error {
	for _, result := range results {
		said := []string{kpt.Text(result, "message")}
		for _, at := range [][]string{{"resourceRef", "kind"}, {"resourceRef", "name"}, {"field", "path"}, {"file", "path"}} {
			if where := kpt.Text(result, at...); where != "" {
				said = append(said, at[len(at)-1]+" "+where)
			}
		}
		message := strings.Join(said, "; ")
		if kpt.Text(result, "severity") == "error" {
			return fmt.Errorf("it says: %.*s", maxResult, message)
		}
		r.note("%.*s", maxResult, message)
	}
	return nil
}
