package generator

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	extensionsv1 "sluice.dev/sluice/api/extensions/v1beta1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/memory"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/tree"
)

const (
	// maxOutputs bounds the artifacts of one generator: each has a place in its status.
	maxOutputs = 2000
	// maxOperations bounds the operations of all that a pattern gives.
	maxOperations = 100_000
	// outputCost and operationCost are what an artifact and an operation take in memory, with their texts.
	outputCost, operationCost = 2 << 10, 512
)

// maxNamed bounds how much of a name is told in an error.
const maxNamed = 256

var (
	// plainName is what an artifact may be called whose name is no pattern, as Flux has it.
	plainName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	// captureName is what may stand in braces.
	captureName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// output is an artifact that is to be made.
type output struct {
	extensionsv1.OutputArtifact

	// labels are what a pattern has captured.
	labels map[string]string
	// shape is the checksum of all in the spec that shapes the artifact.
	shape string
	// taken says that somebody else had made an ExternalArtifact of the name when it was looked at last.
	taken bool
}

// shaped gives an output its shape.
func shaped(made output) output {
	// No text cannot be encoded; what has no shape is made anew.
	made.shape, _ = source.ConfigChecksum("externalartifact", made.OutputArtifact)
	return made
}

// named are outputs without what they are made by.
func named(outputs []output) []output {
	short := make([]output, len(outputs))
	for i, made := range outputs {
		short[i] = output{OutputArtifact: extensionsv1.OutputArtifact{Name: made.Name}, labels: made.labels, shape: made.shape}
	}
	return short
}

func invalid(format string, args ...any) error {
	return failure.Stall(extensionsv1.ValidationFailedReason, fmt.Errorf(format, args...))
}

// check says what in a spec contradicts itself, or is not allowed.
func (m *Maker) check(obj *extensionsv1.ArtifactGenerator) error {
	aliases := map[string]bool{}
	for _, from := range obj.Spec.Sources {
		if aliases[from.Alias] {
			return invalid("duplicate source alias '%s' found", from.Alias)
		}
		aliases[from.Alias] = true
		if !m.CrossNamespace && from.GetNamespace(obj.Namespace) != obj.Namespace {
			return failure.Stall(extensionsv1.AccessDeniedReason, fmt.Errorf("cross-namespace reference to source %s/%s/%s is not allowed: "+
				"take it from this namespace, or start the controller with --no-cross-namespace-refs=false", from.Kind, from.Namespace, from.Name))
		}
	}
	if err := refers("pathPattern", obj.Spec.PathPattern, aliases); err != nil {
		return err
	}
	names := map[string]bool{}
	for _, made := range obj.Spec.OutputArtifacts {
		if names[made.Name] {
			return invalid("duplicate artifact name '%s' found", made.Name)
		}
		names[made.Name] = true
		if obj.Spec.PathPattern == "" && !plainName.MatchString(made.Name) {
			return invalid("artifact name '%s' is not of lower-case letters, digits and dashes", made.Name)
		}
		if err := checkOutput(made, aliases); err != nil {
			return err
		}
	}
	return nil
}

// checkOutput says whether everything in an artifact refers to a source.
func checkOutput(made extensionsv1.OutputArtifact, aliases map[string]bool) error {
	err := cmp.Or(
		refers("artifact "+made.Name+" revision", made.Revision, aliases),
		refers("artifact "+made.Name+" originRevision", made.OriginRevision, aliases),
	)
	for _, operation := range made.Copy {
		err = cmp.Or(err, refers("artifact "+made.Name+" copy", operation.From, aliases))
	}
	return err
}

// refers says whether a reference is to a source, if it is there.
func refers(what, reference string, aliases map[string]bool) error {
	if alias := aliasOf(reference); reference != "" && !aliases[alias] {
		return invalid("%s source alias '%s' not found", what, alias)
	}
	return nil
}

// plain are the outputs of a spec without a pattern.
func plain(spec extensionsv1.ArtifactGeneratorSpec) []output {
	outputs := make([]output, len(spec.OutputArtifacts))
	for i, made := range spec.OutputArtifacts {
		outputs[i] = shaped(output{OutputArtifact: made})
	}
	return outputs
}

// pattern is a path in which some parts stand for any.
type pattern struct {
	text  string // as the spec has it
	alias string
	path  *regexp.Regexp
	names []string // of what is captured
}

// parse reads a pattern.
func parse(text string) (pattern, error) {
	alias, place, _ := strings.Cut(strings.TrimPrefix(text, "@"), "/")
	p := pattern{text: text, alias: alias}
	var expression strings.Builder
	for place != "" {
		literal, rest, found := strings.Cut(place, "{")
		if strings.Contains(literal, "}") {
			return p, invalid("pathPattern %q: a brace is closed that was not opened", text)
		}
		expression.WriteString(regexp.QuoteMeta(literal))
		if !found {
			break
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed || !captureName.MatchString(name) || slices.Contains(p.names, name) {
			return p, invalid("pathPattern %q: '{%.*s' is no capture: it is to be a name in braces, of letters, digits and underscores, and there once", text, maxNamed, rest)
		}
		if problems := validation.IsQualifiedName(name); len(problems) > 0 {
			return p, invalid("pathPattern %q: capture '%s' is no key of a label: %s", text, name, strings.Join(problems, "; "))
		}
		p.names = append(p.names, name)
		expression.WriteString(`([^/]+)`)
		place = after
	}
	var err error
	if p.path, err = regexp.Compile(`^` + expression.String() + `$`); err != nil {
		return p, invalid("pathPattern %q: %w", text, err)
	}
	return p, nil
}

// expand are the outputs of a spec with a pattern: one set for each folder of the source that it matches.
func expand(ctx context.Context, spec extensionsv1.ArtifactGeneratorSpec, sources map[string]*tree.Tree) ([]output, error) {
	p, err := parse(spec.PathPattern)
	if err != nil {
		return nil, err
	}
	var outputs []output
	operations := 0
	from := map[string]string{} // the folder of each name
	err = fs.WalkDir(sources[p.alias], tree.Root, func(folder string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || folder == tree.Root {
			return err
		}
		captured := p.path.FindStringSubmatch(folder)
		if captured == nil {
			return nil
		}
		set, err := p.set(spec, folder, captured[1:])
		if err != nil {
			return err
		}
		for _, made := range set {
			operations += len(made.Copy)
			if err := p.afford(ctx, made, operations); err != nil {
				return err
			}
			if other, taken := from[made.Name]; taken {
				return invalid("pathPattern %q: folders %.*q and %.*q both give the artifact name '%s'", p.text, maxNamed, other, maxNamed, folder, made.Name)
			}
			from[made.Name] = folder
		}
		if outputs = append(outputs, set...); len(outputs) > maxOutputs {
			return invalid("pathPattern %q: it gives more than %d artifacts: make several generators", p.text, maxOutputs)
		}
		return nil
	})
	return outputs, err
}

// afford draws what one more output takes, with which there are so many operations in all.
func (p pattern) afford(ctx context.Context, made output, operations int) error {
	if operations > maxOperations {
		return invalid("pathPattern %q: it gives more than %d copy operations: make several generators", p.text, maxOperations)
	}
	return memory.Draw(ctx, outputCost+operationCost*int64(len(made.Copy)))
}

// set are the outputs of one folder.
func (p pattern) set(spec extensionsv1.ArtifactGeneratorSpec, folder string, captured []string) ([]output, error) {
	raw, labels := map[string]string{}, map[string]string{}
	for i, name := range p.names {
		raw[name], labels[name] = captured[i], strings.ToLower(captured[i])
		if problems := validation.IsValidLabelValue(labels[name]); len(problems) > 0 {
			return nil, invalid("pathPattern %q: folder %.*q: '%s' is no value of a label: %s", p.text, maxNamed, folder, labels[name], strings.Join(problems, "; "))
		}
	}
	outputs := plain(spec)
	for i := range outputs {
		made := &outputs[i]
		made.labels = maps.Clone(labels)
		var err error
		if made.Name, err = render(made.Name, labels); err != nil {
			return nil, invalid("pathPattern %q: artifact name: %w", p.text, err)
		}
		if problems := validation.IsDNS1123Subdomain(made.Name); len(problems) > 0 {
			return nil, invalid("pathPattern %q: folder %.*q gives the artifact name '%s': %s", p.text, maxNamed, folder, made.Name, strings.Join(problems, "; "))
		}
		made.Copy = slices.Clone(made.Copy)
		for j := range made.Copy {
			for _, text := range []*string{&made.Copy[j].From, &made.Copy[j].To} {
				if *text, err = render(*text, raw); err != nil {
					return nil, invalid("pathPattern %q: artifact %s: %w", p.text, made.Name, err)
				}
			}
		}
		*made = shaped(*made)
	}
	return outputs, nil
}

// render puts what was captured in the place of what stands in braces.
func render(text string, captured map[string]string) (string, error) {
	var to strings.Builder
	for rest := text; ; {
		literal, after, found := strings.Cut(rest, "{")
		if strings.Contains(literal, "}") {
			return "", fmt.Errorf("in %q a brace is closed that was not opened", text)
		}
		to.WriteString(literal)
		if !found {
			return to.String(), nil
		}
		name, more, closed := strings.Cut(after, "}")
		value, known := captured[name]
		if !closed || !known {
			return "", fmt.Errorf("in %q '{%.*s' stands for nothing that the pattern captures", text, maxNamed, after)
		}
		to.WriteString(value)
		rest = more
	}
}
