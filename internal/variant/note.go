package variant

import (
	"cmp"

	"sluice.dev/sluice/internal/kpt"
)

// noted are the annotations that say where a package comes from, in the order in which they are written.
func noted() []string {
	return []string{kpt.AnnotationVariant, kpt.AnnotationConfig, kpt.AnnotationBase, kpt.AnnotationApplied}
}

// notes are the annotations of the version.
func (v Version) notes(base string) (map[string]string, error) {
	intent, err := Intent(v.Blueprint, v.Config)
	if err != nil {
		return nil, err
	}
	applied, err := v.Config.Applied()
	if err != nil {
		return nil, err
	}
	return map[string]string{
		kpt.AnnotationVariant: v.Config.Owner.String(), kpt.AnnotationConfig: intent,
		kpt.AnnotationBase: cmp.Or(base, kpt.BaseNone), kpt.AnnotationApplied: applied,
	}, nil
}

// note makes the package's Kptfile say the notes, and none that is not among them.
func note(resources *kpt.Resources, notes map[string]string) error {
	kptfile, err := resources.Kptfile("")
	if err != nil {
		return err
	}
	for _, key := range noted() {
		if value, found := notes[key]; found {
			kptfile.SetAnnotation(key, value)
		} else {
			kptfile.RemoveAnnotation(key)
		}
	}
	return nil
}
