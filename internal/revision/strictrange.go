package revision

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// StrictRange selects versions by one reading only. Where Range follows the dialect that users of Git tags know,
// this one refuses whatever two dialects read differently: short versions such as 1.2 outside a wildcard, spans, and
// a leading 'v'.
//
// A range is a list of comparisons, joined by spaces or commas, all of which must hold (>=1.2.0 <2.0.0), or several
// such lists joined by ||, one of which must hold. Comparisons are = != > < >= <= ~ ^ with a full version, a full
// version alone, and wildcards (1.2.x, 1.x, *), where = and != may stand before a wildcard.
//
// Prereleases take part by precedence, with one exception: <2.0.0 never admits 2.0.0-rc.1. Likewise ^1.2.0 and ~1.2.0
// end before the prereleases of the next major or minor version. Whether prereleases are wanted at all is not the
// range's to say.
type StrictRange struct {
	alternatives [][]comparison
}

// comparison is one condition. A wildcard fixes the first numbers of the version alone.
type comparison struct {
	operator string
	version  Version
	wildcard bool
	fixed    int
}

// ParseStrictRange reads a range. Errors are ErrInvalidRange and say what to write instead.
func ParseStrictRange(s string) (StrictRange, error) {
	if len(s) > MaxRangeLength {
		return StrictRange{}, fmt.Errorf("%w: %d bytes are more than %d", ErrInvalidRange, len(s), MaxRangeLength)
	}
	var parsed StrictRange
	for alternative := range strings.SplitSeq(s, "||") {
		comparisons, err := parseAlternative(alternative)
		if err != nil {
			return StrictRange{}, fmt.Errorf("%w %q: %w", ErrInvalidRange, s, err)
		}
		parsed.alternatives = append(parsed.alternatives, comparisons)
	}
	return parsed, nil
}

// Contains says whether the version is in the range. The zero StrictRange contains nothing.
func (r StrictRange) Contains(v Version) bool {
	return slices.ContainsFunc(r.alternatives, func(all []comparison) bool {
		return !slices.ContainsFunc(all, func(c comparison) bool { return !c.admits(v) })
	})
}

func (c comparison) admits(v Version) bool {
	if c.wildcard {
		return sameNumbers(c.version, v, c.fixed) != (c.operator == "!=")
	}
	order := v.Compare(c.version)
	switch c.operator {
	case "!=":
		return order != 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	case "<=":
		return order <= 0
	case "<":
		return order < 0 && !isPrereleaseOf(v, c.version)
	case "~":
		return order >= 0 && sameNumbers(c.version, v, 2)
	case "^":
		return order >= 0 && sameNumbers(c.version, v, compatible(c.version))
	default:
		return order == 0
	}
}

// isPrereleaseOf says whether v is a prerelease of that very release: lower by precedence, and yet not what somebody
// means who excludes the release.
func isPrereleaseOf(v, release Version) bool {
	return release.Prerelease() == "" && v.Prerelease() != "" && sameNumbers(v, release, 3)
}

// compatible is how many numbers two versions share that promise the same interface: below 1.0.0 a change of the
// first number that is not zero may break it.
func compatible(v Version) int {
	switch {
	case v.Major() > 0:
		return 1
	case v.Minor() > 0:
		return 2
	default:
		return 3
	}
}

func sameNumbers(a, b Version, fixed int) bool {
	return (fixed < 1 || a.Major() == b.Major()) && (fixed < 2 || a.Minor() == b.Minor()) &&
		(fixed < 3 || a.Patch() == b.Patch())
}

func parseAlternative(s string) ([]comparison, error) {
	var comparisons []comparison
	for list := range strings.SplitSeq(s, ",") {
		words := strings.Fields(list)
		if len(words) == 0 {
			return nil, errors.New("a condition is missing; '*' selects every version")
		}
		for len(words) > 0 {
			word := words[0]
			words = words[1:]
			if operator, operand := cutOperator(word); operator != "" && operand == "" && len(words) > 0 {
				word = operator + words[0]
				words = words[1:]
			}
			c, err := parseComparison(word)
			if err != nil {
				return nil, err
			}
			comparisons = append(comparisons, c)
		}
	}
	return comparisons, nil
}

func parseComparison(word string) (comparison, error) {
	operator, operand := cutOperator(word)
	switch {
	case operand == "":
		return comparison{}, fmt.Errorf("no version stands after %s", operator)
	case operand == "-":
		return comparison{}, errors.New("write a span as '>=1.2.0 <=2.0.0'")
	case strings.ContainsAny(operand[:1], "=!<>~^"):
		return comparison{}, fmt.Errorf("%q does not begin with one of = != > < >= <= ~ ^ and a version", word)
	}
	if fixed, isWildcard := cutWildcard(operand); isWildcard {
		return parseWildcard(operator, operand, fixed)
	}
	if isShort(operand) {
		return comparison{}, shortVersion(operator, operand)
	}
	version, err := ParseStrict(operand)
	if err != nil {
		return comparison{}, err
	}
	if strings.Contains(operand, "+") {
		return comparison{}, fmt.Errorf("build metadata has no say in a range: write %s%s", operator, version.Precedence())
	}
	return comparison{operator: operator, version: version}, nil
}

func cutOperator(word string) (operator, operand string) {
	for _, operator := range []string{">=", "<=", "!=", "=", ">", "<", "~", "^"} {
		if operand, ok := strings.CutPrefix(word, operator); ok {
			return operator, operand
		}
	}
	return "", word
}

// cutWildcard returns the numbers in front of the first wildcard: none for '*', two for 1.2.x. What follows a
// wildcard can only be wildcards.
func cutWildcard(operand string) (fixed []string, isWildcard bool) {
	parts := strings.Split(operand, ".")
	for len(fixed) < len(parts) && !isAny(parts[len(fixed)]) {
		fixed = append(fixed, parts[len(fixed)])
	}
	if len(parts) > 3 || len(fixed) == len(parts) {
		return nil, false
	}
	for _, part := range parts[len(fixed):] {
		if !isAny(part) {
			return nil, false
		}
	}
	return fixed, true
}

func isAny(part string) bool { return part == "x" || part == "X" || part == "*" }

func parseWildcard(operator, operand string, fixed []string) (comparison, error) {
	if operator != "" && operator != "=" && operator != "!=" {
		return comparison{}, fmt.Errorf("%s does not go with the wildcard %s: write a full version after it", operator, operand)
	}
	numbers := [3]string{"0", "0", "0"}
	copy(numbers[:], fixed)
	version, err := ParseStrict(strings.Join(numbers[:], "."))
	if err != nil {
		return comparison{}, fmt.Errorf("the wildcard %s has no plain numbers before it", operand)
	}
	return comparison{operator: operator, version: version, wildcard: true, fixed: len(fixed)}, nil
}

// isShort says whether the operand is one or two numbers.
func isShort(operand string) bool {
	first, second, two := strings.Cut(operand, ".")
	return isNumber(first) && (!two || isNumber(second))
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// shortVersion refuses what is an exact version to some tools and a range to others, and says how to write each.
func shortVersion(operator, operand string) error {
	full := operand + ".0"
	if !strings.Contains(operand, ".") {
		full += ".0"
	}
	if operator != "" {
		return fmt.Errorf("%s%s is short of three numbers: write %s%s", operator, operand, operator, full)
	}
	if strings.Contains(operand, ".") {
		return fmt.Errorf("%s is short of three numbers: write %s.x or ~%s", operand, operand, full)
	}
	return fmt.Errorf("%s is short of three numbers: write %s.x or ^%s", operand, operand, full)
}
