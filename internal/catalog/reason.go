package catalog

// Reason says in CamelCase why a release was not chosen, or what is remarkable about one.
type Reason string

// Reasons of a request that cannot be answered as it is written. Only an edit of the request helps.
const (
	// InvalidRequest: neither a name nor a template is given, or a field has a value that it cannot have.
	InvalidRequest Reason = "InvalidRequest"
	// AmbiguousSelection: more than one of channel, version, range and latest is given, or one of them beside a
	// template. Keep one.
	AmbiguousSelection Reason = "AmbiguousSelection"
	// InvalidVersion: a version in the request is no strict semantic version. Write it as 1.2.3, without a 'v'.
	InvalidVersion Reason = "InvalidVersion"
	// InvalidRange: the range cannot be read, or two tools read it differently. The message says what to write.
	InvalidRange Reason = "InvalidRange"
	// ModuleMismatch: the template belongs to another module than the request names, or the request names another module
	// than is installed. Use an installation of its own for each module.
	ModuleMismatch Reason = "ModuleMismatch"
)

// Reasons found in the catalogue. They pass when the catalogue changes, or the request does.
const (
	// ModuleNotFound: the catalogue has neither releases nor channels of the module. Publish it, correct the name, or name
	// the other catalogue.
	ModuleNotFound Reason = "ModuleNotFound"
	// TemplateNotFound: the catalogue has no template of that name. Publish it, correct the name, or name the other
	// catalogue.
	TemplateNotFound Reason = "TemplateNotFound"
	// ModuleUnknown: the template does not say which module it is a release of. State it in the template.
	ModuleUnknown Reason = "ModuleUnknown"
	// ChannelNotFound: the module has no channel of that name. Choose one of those that the message lists.
	ChannelNotFound Reason = "ChannelNotFound"
	// ChannelTargetMissing: the channel points to a version that no template has. Publish it, or correct the module.
	ChannelTargetMissing Reason = "ChannelTargetMissing"
	// ChannelSuspended: the module's team has stopped the channel. Wait, or choose another channel.
	ChannelSuspended Reason = "ChannelSuspended"
	// ChannelConflict: several templates claim the channel, and none is picked. Leave one claim, or list the channel in
	// the module.
	ChannelConflict Reason = "ChannelConflict"
	// VersionNotFound: no template offers that version to everyone. Publish one without a channel, or choose another way.
	VersionNotFound Reason = "VersionNotFound"
	// NoMatchingRelease: no release passes the prerelease policy and the range. Widen them; the trace counts what was left.
	NoMatchingRelease Reason = "NoMatchingRelease"
	// ReleaseNotReady: the release is there and its artifact is not. The template's status says why.
	ReleaseNotReady Reason = "ReleaseNotReady"
	// ReleaseWithdrawn: the release was withdrawn or is being deleted. Choose the one that replaces it.
	ReleaseWithdrawn Reason = "ReleaseWithdrawn"
	// ConsumerNotAllowed: the module does not admit the installation's namespace. Ask the module's team.
	ConsumerNotAllowed Reason = "ConsumerNotAllowed"
	// Conflict: a version stands for two different contents: in two templates, or in the catalogue and in what is
	// installed. Publish the new content under a new version.
	Conflict Reason = "Conflict"
)

// Reasons of a release that was found and is not moved to. What is installed stays.
const (
	// DowngradeBlocked: the release is older than what is installed. Name its exact version in allowDowngradeTo.
	DowngradeBlocked Reason = "DowngradeBlocked"
	// VersionUnknown: of what is installed and what is chosen, one has no version, so that nothing says which is newer. Give
	// the template a version and name it in allowDowngradeTo, or name what ran before. On a template it says
	// that the release can be chosen by channel or by name only.
	VersionUnknown Reason = "VersionUnknown"
	// OneWayChannel: what is installed came from a channel that is left with consent only. Name the exact version to leave
	// for in allowDowngradeTo.
	OneWayChannel Reason = "OneWayChannel"
	// UpgradeBlocked: the release is a larger step than maxStep allows. Raise maxStep, or choose a nearer version.
	UpgradeBlocked Reason = "UpgradeBlocked"
	// UpgradesNever: the request wants no changes after the first install. Change the mode.
	UpgradesNever Reason = "UpgradesNever"
	// AwaitingApproval: the change waits for its plan's digest in approve.
	AwaitingApproval Reason = "AwaitingApproval"
	// NotSelected: the release is newer, and the request selects another. It stands with available upgrades only.
	NotSelected Reason = "NotSelected"
)

// Reasons that stand in findings and warnings only.
const (
	// Alias: other templates give the same content the same version. They are one release.
	Alias Reason = "Alias"
	// ChannelOverridden: the template claims a channel that the module points elsewhere. The module decides.
	ChannelOverridden Reason = "ChannelOverridden"
	// ReleaseDeprecated: the release is deprecated, or its support has ended. Move on when you can.
	ReleaseDeprecated Reason = "ReleaseDeprecated"
)

// IsMalformed says whether only an edit of the request can help.
func (r Reason) IsMalformed() bool {
	switch r {
	case InvalidRequest, AmbiguousSelection, InvalidVersion, InvalidRange, ModuleMismatch:
		return true
	default:
		return false
	}
}
