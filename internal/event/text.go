package event

import (
	"strings"
	"unicode"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/printable"
)

const (
	// maxKubernetesMessage is the longest note that the API server takes (events.k8s.io validation), in bytes.
	maxKubernetesMessage = 1024
	// maxReceiverMessage is the longest message in event.toolkit.fluxcd.io/v1beta1; counted here in bytes, which is
	// never more than the characters the schema counts.
	maxReceiverMessage = 39000
)

// clean makes a message safe to print and to pass on: texts from outside (servers' answers, commit subjects) end up in
// terminals, logs and chat rooms. Control characters, which move cursors and forge lines, and those which reverse the
// reading direction are written as escapes, and so are bytes that are not UTF-8. URLs lose what may be secret in them;
// no secret should get this far.
func clean(message string) string {
	message = credential.Redact(strings.TrimSpace(printable.Cut(message, maxReceiverMessage)))
	return printable.Cut(printable.Escape(message, maxReceiverMessage, unprintable), maxReceiverMessage)
}

func unprintable(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}
