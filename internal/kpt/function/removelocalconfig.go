package function

import (
	"context"
	"errors"
)

// removeLocalConfig takes objects out that are for tools. Kptfiles stay, as there would be no package without them, and so does
// what functions are configured by: without it the package could not be rendered again.
func removeLocalConfig(ctx context.Context, r *run) error {
	if r.config != nil {
		return errors.New("this function takes no configuration")
	}
	for _, o := range r.objects {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !o.resource.IsLocalConfig() || o.resource.IsKptfile() {
			continue
		}
		needed, err := r.configures(o)
		if err != nil {
			return err
		}
		if needed {
			r.note("%s in %s stays: a function is configured by it", o.resource.ID(), o.resource.File)
			continue
		}
		r.remove(o)
	}
	return nil
}
