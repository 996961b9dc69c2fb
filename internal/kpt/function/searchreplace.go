package function

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// searchReplace finds single values by what they are, by where they stand or both, and gives them another value or a comment.
func searchReplace(ctx context.Context, r *run) error {
	s, err := readSearch(r)
	if err != nil {
		return err
	}
	for _, o := range r.objects {
		if err := ctx.Err(); err != nil {
			return err
		}
		configures, err := r.configures(o)
		if err != nil {
			return err
		}
		// What says what is looked for is not what is meant.
		if configures || o.resource.IsKptfile() || !s.inFile(o.resource.File) {
			continue
		}
		if err := s.walk(ctx, o, location{node: o.root}, s.path.begin()); err != nil {
			return err
		}
	}
	if s.found == 0 {
		r.note("no value matches")
	}
	return nil
}

// The keys of the function's configuration, which is a ConfigMap.
const (
	byValue      = "by-value"
	byValueRegex = "by-value-regex"
	byPath       = "by-path"
	byFilePath   = "by-file-path"
	putValue     = "put-value"
	putComment   = "put-comment"
)

const (
	// maxPattern bounds a regular expression, in bytes, and maxProgram what it is compiled to, in instructions.
	maxPattern, maxProgram = 1024, 1000
	// maxMatching bounds how many instructions matching one value may take.
	maxMatching = 1 << 29
)

// search is what is looked for, and what is put there.
type search struct {
	*run
	value   *string
	pattern *regexp.Regexp
	program int
	path    searchPath
	file    *regexp.Regexp
	put     *string
	comment *string
	found   int
}

func readSearch(r *run) (*search, error) {
	switch {
	case r.config == nil:
		return nil, errNoConfig
	case r.config.own != nil:
		return nil, errors.New("the configuration has to be a ConfigMap")
	}
	if err := r.config.only(byValue, byValueRegex, byPath, byFilePath, putValue, putComment); err != nil {
		return nil, err
	}
	s := &search{run: r, value: r.given(byValue), put: r.given(putValue), comment: r.given(putComment)}
	regex, path := r.given(byValueRegex), r.given(byPath)
	switch {
	case s.value != nil && regex != nil:
		return nil, fmt.Errorf("there are both %s and %s", byValue, byValueRegex)
	case s.value == nil && regex == nil && path == nil:
		return nil, fmt.Errorf("nothing is looked for: %s, %s or %s is needed", byValue, byValueRegex, byPath)
	case s.put == nil && s.comment == nil:
		return nil, fmt.Errorf("there is nothing to put: %s or %s is needed", putValue, putComment)
	case s.comment != nil && strings.ContainsAny(*s.comment, "\r\n"):
		return nil, fmt.Errorf("%s: a comment is one line", putComment)
	}
	return s, s.compile(regex, path)
}

// given is the value of a key, nil where there is none.
func (r *run) given(key string) *string {
	if value, ok := r.config.data[key]; ok {
		return &value
	}
	return nil
}

// compile reads the patterns.
func (s *search) compile(regex, path *string) (err error) {
	if regex != nil {
		if s.pattern, s.program, err = wholePattern(*regex); err != nil {
			return fmt.Errorf("%s: %w", byValueRegex, err)
		}
		if s.compat {
			if s.pattern, err = regexp.Compile(*regex); err != nil {
				return fmt.Errorf("%s: %w", byValueRegex, err)
			}
		}
	}
	if path != nil {
		if s.path, err = parseSearchPath(*path); err != nil {
			return fmt.Errorf("%s: %w", byPath, err)
		}
	}
	if s.file, err = filePattern(s.config.data[byFilePath]); err != nil {
		return fmt.Errorf("%s: %w", byFilePath, err)
	}
	return errors.Join(s.checkGroups(putValue, s.put), s.checkGroups(putComment, s.comment))
}

// wholePattern compiles an expression that matches the whole of a value. A small text can be a large program, and each
// instruction of it may be tried at each place.
func wholePattern(text string) (*regexp.Regexp, int, error) {
	if len(text) > maxPattern {
		return nil, 0, fmt.Errorf("the expression has %d bytes, and %d are allowed", len(text), maxPattern)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, 0, fmt.Errorf("the expression %q: %w", text, err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) > maxProgram {
		return nil, 0, fmt.Errorf("the expression %q is too large: fewer repetitions help", text)
	}
	whole, err := regexp.Compile("^(?:" + text + ")$")
	return whole, len(program.Inst), err
}

// group is what the expression's group of the number matched.
var group = regexp.MustCompile(`\$\{([0-9]+)\}`)

// checkGroups fails for groups that the expression has not.
func (s *search) checkGroups(key string, text *string) error {
	if text == nil {
		return nil
	}
	for _, found := range group.FindAllStringSubmatch(*text, -1) {
		number, err := strconv.Atoi(found[1])
		if err != nil || s.pattern == nil || number > s.pattern.NumSubexp() {
			return fmt.Errorf("%s: there is no group %s in %s", key, found[0], byValueRegex)
		}
	}
	return nil
}

// filled is the text with the groups that matched. How long that is, is known before it is made: a few bytes name a long group
// again and again.
func (s *search) filled(text string, groups []string) (string, error) {
	total := int64(len(text))
	value := func(found string) string {
		number, err := strconv.Atoi(found[2 : len(found)-1])
		if err != nil || number >= len(groups) {
			return found
		}
		return groups[number]
	}
	for _, found := range group.FindAllString(text, -1) {
		total += int64(len(value(found)))
	}
	if total > s.room.most {
		return "", fmt.Errorf("%w: more than %d bytes", ErrTooLarge, s.room.most)
	}
	return group.ReplaceAllStringFunc(text, value), nil
}

func (s *search) inFile(name string) bool { return s.file == nil || s.file.MatchString(name) }

// walk looks at all single values at and below the place. The states are how far the path was followed.
func (s *search) walk(ctx context.Context, o *object, at location, states states) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n := at.node
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			below := location{n.Content[i+1], append(at.path, key)}
			if err := s.walk(ctx, o, below, s.path.follow(states, key, -1, below.node)); err != nil {
				return err
			}
		}
	case yaml.SequenceNode:
		for i, element := range n.Content {
			below := location{element, append(at.path, strconv.Itoa(i))}
			if err := s.walk(ctx, o, below, s.path.follow(states, "", i, element)); err != nil {
				return err
			}
		}
	case yaml.ScalarNode:
		if s.path == nil || s.path.ends(states) {
			return s.look(o, at)
		}
	default: // There are no aliases in objects.
	}
	return nil
}

// look puts what is to be put, if the value is the one.
func (s *search) look(o *object, at location) error {
	matches, groups, err := s.matches(at.node.Value)
	if err != nil {
		return o.fail(at.path, err)
	}
	if !matches {
		return nil
	}
	s.found++
	if isOrigin(o, at.path) {
		return o.fail(at.path, errOrigin)
	}
	if s.comment != nil {
		comment, err := s.filled(*s.comment, groups)
		if err == nil {
			err = s.annotate(at.node, comment)
		}
		if err != nil {
			return o.fail(at.path, err)
		}
	}
	if s.put == nil {
		return nil
	}
	value, err := s.filled(*s.put, groups)
	if err != nil {
		return o.fail(at.path, err)
	}
	return s.replace(o, at, value)
}

func (s *search) matches(value string) (bool, []string, error) {
	switch {
	case s.value != nil:
		return value == *s.value, nil, nil
	case s.pattern == nil:
		return true, nil, nil
	case len(value) > maxMatching/s.program:
		return false, nil, fmt.Errorf("has %d bytes, too many for an expression of this size; %s or exclude can leave it out", len(value), byPath)
	}
	groups := s.pattern.FindStringSubmatch(value)
	return groups != nil, groups, nil
}

// replace puts the value. One that would be found and changed again would grow each time the package is rendered.
func (s *search) replace(o *object, at location, value string) error {
	again, groups, err := s.matches(value)
	if err == nil && again {
		var once string
		if once, err = s.filled(*s.put, groups); err == nil && once != value {
			err = fmt.Errorf("%.200q would be found again, and become another value each time: %s has to match no result", value, byValueRegex)
		}
	}
	if err != nil {
		return o.fail(at.path, err)
	}
	if at.node.Value == value && !isNull(at.node) {
		return nil
	}
	if err := s.room.take(int64(len(value)) - int64(len(at.node.Value))); err != nil {
		return o.fail(at.path, err)
	}
	typed(o, at.node, at.path, value)
	s.changed++
	return nil
}

// annotate puts the comment behind the value.
func (s *search) annotate(n *yaml.Node, comment string) error {
	comment = "# " + strings.TrimSpace(comment)
	if n.LineComment == comment {
		return nil
	}
	if strings.ContainsAny(comment, "\r\n") {
		return errors.New("what the comment is made of has several lines")
	}
	if err := s.room.take(int64(len(comment))); err != nil {
		return err
	}
	n.LineComment = comment
	s.changed++
	return nil
}
