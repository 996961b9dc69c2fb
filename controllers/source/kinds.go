package source

import (
	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/source/generator"
)

// Object is an object of any source kind.
type Object interface {
	client.Object
	GetArtifact() *meta.Artifact
}

// Known is a source kind as those see it who deal with all of them.
type Known struct {
	// Group is the kind's, Name is the kind as the API spells it, Dir as paths do.
	Group     schema.GroupVersion
	Name, Dir string
	// New returns an empty object of the kind.
	New func() Object
}

// Generated is the kind of what generators make. Others make objects of that kind too.
func Generated() Known {
	return Known{Group: sourcev1.GroupVersion, Name: sourcev1.ExternalArtifactKind, Dir: generator.Dir, New: func() Object { return &sourcev1.ExternalArtifact{} }}
}

// Kinds lists every source kind that has a controller.
func Kinds() []Known {
	return []Known{
		{Group: sourcev1.GroupVersion, Name: sourcev1.GitRepositoryKind, Dir: GitRepositoryDir, New: func() Object { return &sourcev1.GitRepository{} }},
		{Group: sourcev1.GroupVersion, Name: sourcev1.OCIRepositoryKind, Dir: OCIRepositoryDir, New: func() Object { return &sourcev1.OCIRepository{} }},
		{Group: sourcev1.GroupVersion, Name: sourcev1.BucketKind, Dir: BucketDir, New: func() Object { return &sourcev1.Bucket{} }},
		{Group: sourcev1.GroupVersion, Name: sourcev1.HelmRepositoryKind, Dir: HelmRepositoryDir, New: func() Object { return &sourcev1.HelmRepository{} }},
		{Group: sourcev1.GroupVersion, Name: sourcev1.HelmChartKind, Dir: HelmChartDir, New: func() Object { return &sourcev1.HelmChart{} }},
	}
}
