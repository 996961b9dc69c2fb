package v1alpha1

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/api/decode"
)

// UnmarshalJSON decodes an object so that no value in it can fail the list it is part of. A spec that cannot be decoded
// is left empty, with the reason in Undecodable; a status that cannot be is left out, with UnreadableStatus set.
func (in *ModuleInstallation) UnmarshalJSON(data []byte) error {
	type plain ModuleInstallation
	return decode.Object(data, (*plain)(in), &in.TypeMeta, &in.ObjectMeta,
		decode.Spec("spec", &in.Spec, &in.Undecodable),
		decode.Status(&in.Status, ModuleInstallationStatus{ObservedGeneration: -1}, &in.UnreadableStatus))
}

// GetConditions returns the conditions of the object. The slice is the object's own.
func (in *ModuleInstallation) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the object.
func (in *ModuleInstallation) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}

// GetRequeueAfter returns the time between two rounds: DefaultInterval when none is set.
func (in *ModuleInstallation) GetRequeueAfter() time.Duration {
	return orDefault(in.Spec.Interval, DefaultInterval)
}

// GetRetryInterval returns the time until a failed round is tried again: DefaultRetryInterval when none is set.
func (in *ModuleInstallationSpec) GetRetryInterval() time.Duration {
	return orDefault(in.RetryInterval, DefaultRetryInterval)
}

// GetTimeout returns how long the objects may take to become healthy: DefaultTimeout when none is set.
func (in *ModuleInstallationSpec) GetTimeout() time.Duration {
	return orDefault(in.Timeout, DefaultTimeout)
}

// GetManagement returns whether the objects are acted on: ManagementManaged when nothing is set.
func (in *ModuleInstallationSpec) GetManagement() Management {
	return cmp.Or(in.Management, ManagementManaged)
}

// GetAdopt returns which objects are taken over that were there before: AdoptIfUnowned when nothing is set.
func (in *ModuleInstallationSpec) GetAdopt() AdoptPolicy {
	return cmp.Or(in.Adopt, AdoptIfUnowned)
}

// GetIgnored returns the fields that others own.
func (in *ModuleInstallationSpec) GetIgnored() []DriftIgnore {
	if in.Drift == nil {
		return nil
	}
	return in.Drift.Ignore
}

// GetDeletionMode returns what becomes of the module when the object is deleted, or "" when the template's mode counts.
func (in *ModuleInstallationSpec) GetDeletionMode() DeletionMode {
	if in.Deletion == nil {
		return ""
	}
	return in.Deletion.Mode
}

// GetUpgradeMode returns when other releases are taken: UpgradeAutomatic when nothing is set.
func (in *ModuleInstallationSpec) GetUpgradeMode() UpgradeMode {
	if in.Upgrade == nil {
		return UpgradeAutomatic
	}
	return cmp.Or(in.Upgrade.Mode, UpgradeAutomatic)
}

// GetApprove returns the digest of the plan that may be carried out, or "" when none may.
func (in *ModuleInstallationSpec) GetApprove() string {
	if in.Upgrade == nil {
		return ""
	}
	return in.Upgrade.Approve
}

// PruneEnabled says whether objects that are no longer needed are removed: yes when nothing is set.
func (in *ModuleInstallationSpec) PruneEnabled() bool {
	return in.Prune == nil || in.Prune.Enabled == nil || *in.Prune.Enabled
}

// GetPruneMaxPercent returns the largest part of the objects that may be removed at once, in percent:
// DefaultPruneMaxPercent when nothing is set.
func (in *ModuleInstallationSpec) GetPruneMaxPercent() int32 {
	if in.Prune == nil || in.Prune.MaxPercent == nil {
		return DefaultPruneMaxPercent
	}
	return *in.Prune.MaxPercent
}

// CreatesDefaultConfig says whether the release's default configuration is created: yes when nothing is set.
func (in *ModuleInstallationSpec) CreatesDefaultConfig() bool {
	return in.Config == nil || in.Config.DefaultConfig != DefaultConfigIgnore
}

// GetCatalog returns where releases are looked for: CatalogAuto when nothing is set.
func (in *ModuleRequest) GetCatalog() Catalog {
	return cmp.Or(in.Catalog, CatalogAuto)
}

func orDefault(set *metav1.Duration, otherwise time.Duration) time.Duration {
	if set == nil {
		return otherwise
	}
	return set.Duration
}
