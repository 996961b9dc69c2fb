package function

import (
	"fmt"

	"sluice.dev/sluice/internal/kpt"
)

// compatAnnotation on the Kptfile of the root has functions do what those of kpt's catalogue do, where it is known to be
// something else than what they say: the package's bytes have to agree with what kpt renders.
const compatAnnotation = "functions.sluice.dev/compat"

// readCompat tells what the root asks for. It counts as it is before any function has run.
func readCompat(resources *kpt.Resources) (bool, error) {
	root, err := resources.Kptfile("")
	if err != nil {
		return false, nil //nolint:nilerr // Without a Kptfile nothing is asked for; whoever needs one says that it is missing.
	}
	switch asked := root.Annotations()[compatAnnotation]; asked {
	case "":
		return false, nil
	case "kpt":
		return true, nil
	default:
		return false, &Error{Field: place([]string{"metadata", "annotations", compatAnnotation}), Err: fmt.Errorf("is %q, and has to be kpt", asked)}
	}
}
