package catalog

import (
	"time"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
)

// Decision is the answer to a request. Either Target or Hold is set.
type Decision struct {
	// Catalog and Namespace are where was looked; empty when the request cannot be answered as it is written.
	Catalog   modulesv1.Catalog
	Namespace string
	// Module is what was looked for, whether or not it was found; empty where nothing says it.
	Module string
	// SelectedBy is how the release was selected: as the request says, or as the module's default says for it.
	SelectedBy Selection
	// Target is the release to run. Changed says that something else, or nothing, runs now.
	Target  *Release
	Changed bool
	// Hold says why nothing moves. What is installed stays and is kept healthy.
	Hold *Hold
	// Trace is the way to the choice: how many releases each rule left.
	Trace []Rule
	// Upgrades are the newer releases, newest first, and MaxUpgrades at most. None are listed before the first install.
	Upgrades []modulesv1.AvailableUpgrade
	// Warnings are about what runs once the decision is carried out.
	Warnings []Finding
	// NextCheck is when the answer changes although nothing is edited: when support ends. Zero means never.
	NextCheck time.Time
}

// MaxUpgrades is how many available upgrades a decision lists.
const MaxUpgrades = 20

// Chosen is the release that was selected, be it held; nil for none.
func (d Decision) Chosen() *Release {
	if d.Hold != nil {
		return d.Hold.Candidate
	}
	return d.Target
}

// Channel is the channel that the release was selected by; empty when it was selected otherwise.
func (d Decision) Channel() string {
	if d.SelectedBy.By == ByChannel {
		return d.SelectedBy.Value
	}
	return ""
}

// Hold says why nothing moves.
type Hold struct {
	// Reason is one of those that the API documents.
	Reason string
	// Message says it in a sentence, and how to go on where that is known.
	Message string
	// Candidate is the release that would have been moved to; nil when none was found, or when the module does not admit
	// the installation.
	Candidate *Release
	// Stalled says that the request leads nowhere: nothing is installed or begun that could be kept, or the request cannot
	// be answered as it is written.
	Stalled bool
}

// IsMalformed says whether only an edit of the request can help.
func (h *Hold) IsMalformed() bool {
	switch h.Reason {
	case modulesv1.InvalidRequestReason, modulesv1.AmbiguousSelectionReason, modulesv1.InvalidVersionReason,
		modulesv1.InvalidRangeReason, modulesv1.ModuleMismatchReason:
		return true
	default:
		return false
	}
}

// Rule is a rule of the choice and what it left.
type Rule struct {
	Name string
	// Kept is how many releases were left after the rule.
	Kept int
	// Note says what the rule found, where the count does not.
	Note string
	// Dropped are whom the rule left out, the highest precedence first. They are there where the request asks for it.
	Dropped []Dropped
}

// Dropped is a release that a rule left out.
type Dropped struct {
	// Template is the name of the release's template, and Version its version; empty where that is unknown.
	Template, Version string
	// Why says it in words that go on from the release's name.
	Why string
}

// Finding is something to know about a release or a channel.
type Finding struct {
	Reason  string
	Message string
}
