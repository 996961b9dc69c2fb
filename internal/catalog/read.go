package catalog

import (
	"fmt"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	"sluice.dev/sluice/internal/revision"
)

// read checks the request by itself.
func (r *resolution) read() *Hold {
	selections := r.request.selections()
	if len(selections) > 1 {
		return &Hold{Reason: modulesv1.AmbiguousSelectionReason, Message: fmt.Sprintf("Both %s and %s are given; keep one", selections[0], selections[1])}
	}
	r.selection = selections[0]
	if message := r.request.malformed(); message != "" {
		return &Hold{Reason: modulesv1.InvalidRequestReason, Message: message}
	}
	if consent := r.request.Upgrade.AllowDowngradeTo; consent != "" {
		if _, err := revision.ParseStrict(consent); err != nil {
			return &Hold{Reason: modulesv1.InvalidVersionReason, Message: fmt.Sprintf("Cannot read allowDowngradeTo: %v", err)}
		}
	}
	var err error
	switch r.selection.By {
	case ByVersion:
		if r.version, err = revision.ParseStrict(r.request.Version); err != nil {
			return &Hold{Reason: modulesv1.InvalidVersionReason, Message: fmt.Sprintf("Cannot read the version: %v", err)}
		}
	case ByRange:
		if r.versions, err = revision.ParseStrictRange(r.request.Range); err != nil {
			return &Hold{Reason: modulesv1.InvalidRangeReason, Message: fmt.Sprintf("Cannot read the range: %v", err)}
		}
	default:
	}
	return nil
}

// malformed says which field has a value that it cannot have, or nothing.
func (r Request) malformed() string {
	if r.Name == "" && r.Template == "" {
		return "Neither a module nor a template is named"
	}
	switch r.Catalog {
	case "", modulesv1.CatalogAuto, modulesv1.CatalogLocal, modulesv1.CatalogSystem:
	default:
		return fmt.Sprintf("Catalog %q is none of Auto, Local and System", r.Catalog)
	}
	switch r.Upgrade.Mode {
	case "", modulesv1.UpgradeAutomatic, modulesv1.UpgradeManual, modulesv1.UpgradeNever:
	default:
		return fmt.Sprintf("Upgrade mode %q is none of Automatic, Manual and Never", r.Upgrade.Mode)
	}
	switch r.Upgrade.MaxStep {
	case "", modulesv1.StepPatch, modulesv1.StepMinor, modulesv1.StepMajor:
	default:
		return fmt.Sprintf("Largest step %q is none of Patch, Minor and Major", r.Upgrade.MaxStep)
	}
	return ""
}
