package engine

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"sluice.dev/sluice/internal/engine/cluster"
)

// Label is the label by which members are found; its value is an InstallationID.
const Label = cluster.PartOf

// Labels that tell people whose member an object is.
const (
	InstallationLabel = "modules.sluice.dev/installation"
	NamespaceLabel    = "modules.sluice.dev/namespace"
)

// ManagerPrefix begins the names of all installations' field managers.
const ManagerPrefix = "sluice-"

// InstallationID is the value of Label for an installation, as KEP-3659 makes it.
func InstallationID(name, namespace string) string {
	sum := sha256.Sum256([]byte(name + "." + namespace + ".ModuleInstallation.modules.sluice.dev"))
	return "applyset-" + base64.RawURLEncoding.EncodeToString(sum[:]) + "-v1"
}

// LabelValue is the InstallationID for a key, which is namespace/name.
func LabelValue(key string) string {
	namespace, name, _ := strings.Cut(key, "/")
	return InstallationID(name, namespace)
}

// Manager is the field manager of an installation's members. Each has its own, and a new one of the same name another:
// under a shared one the API server would let them overwrite each other without a word.
func Manager(uid string) string {
	sum := sha256.Sum256([]byte(uid))
	return ManagerPrefix + hex.EncodeToString(sum[:8])
}

// ours are the labels that the engine puts on members.
func ours() []string { return []string{Label, InstallationLabel, NamespaceLabel} }

// labelsOf are these labels for an installation.
func labelsOf(name, namespace string) map[string]string {
	id := InstallationID(name, namespace)
	if len(name) > maxLabel {
		name = name[:maxLabel-len(cutMark(id))] + cutMark(id)
	}
	return map[string]string{Label: id, InstallationLabel: name, NamespaceLabel: namespace}
}

// maxLabel is how long a label's value may be. Names of installations may be longer.
const maxLabel = 63

// cutMark ends a name that was cut for a label: 64 bits of a hash of the InstallationID.
func cutMark(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "-" + hex.EncodeToString(sum[:8])
}
