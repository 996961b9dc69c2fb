package pkgrepo

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/revision"
)

const (
	// maxPathBytes bounds a package's path with the repository's directory in front of it. It stands in names of refs, of
	// which no file system has more than 255 bytes between two slashes, and few servers more than a thousand in all.
	maxPathBytes = 512
	// maxPartBytes bounds what stands between two slashes. Git appends .lock while it writes a ref.
	maxPartBytes = 200
	// maxNumber is the highest number that a revision may have.
	maxNumber = 1<<31 - 1
	// shownBytes is how much of a name from outside is shown.
	shownBytes = 120
)

// CheckPath tells why a path cannot be a package's, or nothing: it has to be the name of a folder in git and part of the
// names of branches and tags, and to print as one line. The error is ErrName.
func CheckPath(path string) error {
	if len(path) > maxPathBytes {
		return fmt.Errorf("%w: path of a package has %d bytes, more than %d", ErrName, len(path), maxPathBytes)
	}
	for part := range strings.SplitSeq(path, "/") {
		if why := unsafePart(part); why != "" {
			return fmt.Errorf("%w: path of a package %s has a part that %s", ErrName, shown(path), why)
		}
	}
	return nil
}

// CheckWorkspace tells why a name cannot be a workspace's, or nothing. The error is ErrName.
func CheckWorkspace(name string) error {
	if why := unsafePart(name); why != "" {
		return fmt.Errorf("%w: workspace %s %s", ErrName, shown(name), why)
	}
	return nil
}

// unsafePart keeps git-check-ref-format(1), and refuses what is unsafe as a folder's name or misleads its reader.
func unsafePart(part string) string {
	switch {
	case part == "":
		return "is empty"
	case len(part) > maxPartBytes:
		return fmt.Sprintf("is longer than %d bytes", maxPartBytes)
	case part[0] == '.' || part[0] == '-':
		return "begins with a dot or a dash"
	case strings.HasSuffix(part, ".") || strings.HasSuffix(part, ".lock"):
		return "ends in a dot or in .lock"
	case strings.Contains(part, "..") || strings.Contains(part, "@{"):
		return "has .. or @{ in it"
	case !utf8.ValidString(part) || strings.ContainsFunc(part, isForbidden):
		return "has a character in it that no branch can have or that does not print"
	}
	return ""
}

func isForbidden(r rune) bool {
	return r == ' ' || !unicode.IsPrint(r) || strings.ContainsRune(`~^:?*[\/`, r)
}

// shown is a name from outside as errors show it.
func shown(name string) string { return strconv.Quote(printable.Line(name, shownBytes)) }

// numbered is the name of the revision with the number.
func numbered(number int) string { return "v" + strconv.Itoa(number) }

// parseNumber reads v3, or 3 where a person wrote it; zero when it is no number.
func parseNumber(name string) int {
	digits := strings.TrimPrefix(name, "v")
	if digits == "" || digits[0] == '0' || strings.Trim(digits, "0123456789") != "" {
		return 0
	}
	number, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return 0
	}
	return int(number)
}

// parseName reads the last part of a tag: v3, or a semantic version such as v1.2.0.
func parseName(name string) (number int, version revision.Version, ok bool) {
	if strings.HasPrefix(name, "v") {
		if number = parseNumber(name); number > 0 {
			return number, version, true
		}
	}
	version, ok = revision.ParseVersion(name)
	return 0, version, ok
}

// CompareRevisions orders two names of revisions as published revisions are ordered: negative where a is the older one. It cannot order
// names that are neither numbers nor versions, nor a number and a version.
func CompareRevisions(a, b string) (order int, ok bool) {
	first, left, isFirst := parseName(a)
	second, right, isSecond := parseName(b)
	if !isFirst || !isSecond || (first > 0) != (second > 0) {
		return 0, false
	}
	return cmp.Or(cmp.Compare(first, second), left.Compare(right), compareTies(a, b)), true
}

// VariantWorkspace begins the names of the workspaces of variants, as in Porch.
const VariantWorkspace = "packagevariant-"

// workspaceNumber is the number of such a name; zero for all others.
func workspaceNumber(name string) int {
	digits, ok := strings.CutPrefix(name, VariantWorkspace)
	if !ok || strings.HasPrefix(digits, "v") {
		return 0
	}
	return parseNumber(digits)
}
