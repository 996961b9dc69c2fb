package packages_test

import (
	"fmt"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"

	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// TestABrokenTwinStopsNobody: of several Repositories of one URL, some lack their Secret and some are suspended.
func TestABrokenTwinStopsNobody(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	blueprints, _ := p.stocked(readme)
	v := p.variant(always)
	p.published(v, "v1")
	for i := range 6 {
		name := fmt.Sprintf("%c-twin", "ax"[i%2]+byte(i/2))
		source, twin := p.source(name, p.server), p.packages(name)
		source.Spec.URL = p.server.URL("blueprints.git")
		if i < 4 {
			source.Spec.SecretRef = &meta.LocalObjectReference{Name: "not-there"}
		}
		twin.Spec.Suspend = i >= 4
		p.create(source, twin)
		if i < 4 {
			fails(p, twin, sourcev1.AuthenticationFailedReason, "not-there")
		}
	}
	blueprints.Tag("app/v2", blueprints.Commit("main", "newer", plain("2.0.0")), false)
	p.published(v, "v2")
}
