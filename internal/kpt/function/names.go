package function

import (
	"regexp"
	"strings"
)

// What Kubernetes takes for names, in the words of its API conventions.
var (
	labelPart = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`)
	dnsLabel  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
)

// isQualified tells whether a label or an annotation may have the name: example.com/name, or name.
func isQualified(key string) bool {
	domain, name, found := strings.Cut(key, "/")
	if !found {
		domain, name = "", key
	}
	return (!found || isDomain(domain)) && len(name) <= 63 && labelPart.MatchString(name)
}

func isDomain(name string) bool {
	for part := range strings.SplitSeq(name, ".") {
		if !dnsLabel.MatchString(part) {
			return false
		}
	}
	return len(name) <= 253
}

func isLabelValue(value string) bool {
	return value == "" || len(value) <= 63 && labelPart.MatchString(value)
}

// isNamespace tells whether a namespace may have the name.
func isNamespace(name string) bool { return len(name) <= 63 && dnsLabel.MatchString(name) }
