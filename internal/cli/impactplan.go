package cli

import "context"

// maxPlans is how many plans are made: each of them takes the content of a release, and a request for each object.
const maxPlans = 10

// planAll plans for those that get another release, from the edited catalogue.
func (a *assessor) planAll(ctx context.Context) {
	files := *a.files
	files.installations = nil // Those of the cluster are planned for, as it is they that were chosen for.
	tried := 0
	for _, one := range a.told.Installations {
		if tried == maxPlans {
			return
		}
		if one.To == "" || one.Consequence == comesFree {
			continue
		}
		tried++ // A plan that fails may have cost as much.
		a.after.lacking = nil
		p := *a.planner
		p.why = &why{base: &base{IOStreams: a.IOStreams, session: a.in(one.Object.Namespace)}, given: a.given, guessed: a.guessed, files: &files, catalogues: a.after}
		told, err := p.plan(ctx, one.Object.Name)
		if err != nil {
			a.lacking = append(a.lacking, unplannedFor(one.Object, err))
			if ctx.Err() != nil || isGeneral(err) {
				return
			}
			continue
		}
		a.told.Plans = append(a.told.Plans, told)
	}
}
