package catalog_test

import (
	"fmt"
	"testing"

	"sluice.dev/sluice/internal/catalog"
)

// thousand are the releases of one module: a hundred minor versions with ten patches each.
func thousand() []catalog.Release {
	var releases []catalog.Release
	for minor := range 100 {
		for patch := range 10 {
			releases = append(releases, of(fmt.Sprintf("1.%d.%d", minor, patch)))
		}
	}
	return releases
}

func BenchmarkResolve(b *testing.B) {
	index := system(thousand(), foo("stable=1.50.0"))
	for name, request := range map[string]catalog.Request{
		"channel": channel("stable"), "version": version("1.70.0"), "range": within(">=1.20.0 <1.80.0"), "latest": latest(),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := catalog.Resolve(request, runs("1.40.0"), index, now); d.Target == nil {
					b.Fatal(d.Hold)
				}
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	releases := thousand()
	b.ReportAllocs()
	for b.Loop() {
		if c := catalog.New(systemNamespace, releases, nil); len(c.Modules()) != 1 {
			b.Fatal(c.Modules())
		}
	}
}
