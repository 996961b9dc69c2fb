package source

import (
	"github.com/fluxcd/pkg/apis/meta"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/source"
	"sluice.dev/sluice/internal/status"
)

// newTable says how every source kind reports what happened: with the reasons of what goes wrong while upstream is asked,
// and while content is brought. The order of the summary is Flux's.
func newTable(asked, brought string) status.Table {
	ask := status.Failure{Condition: sourcev1.FetchFailedCondition, Reason: asked}
	store := status.Failure{Condition: sourcev1.StorageOperationFailedCondition, Reason: sourcev1.ArchiveOperationFailedReason}
	return status.Table{
		Stages: map[source.Stage]status.Failure{
			source.StageOpen:    ask,
			source.StageResolve: ask,
			source.StageVerify:  {Condition: sourcev1.SourceVerifiedCondition, Reason: sourcev1.VerificationErrorReason},
			source.StageFetch:   {Condition: sourcev1.FetchFailedCondition, Reason: brought},
			source.StageArchive: store,
			source.StageStore:   store,
		},
		Stored:   sourcev1.ArtifactInStorageCondition,
		Outdated: sourcev1.ArtifactOutdatedCondition,
		Verified: sourcev1.SourceVerifiedCondition,
		Summary: []string{
			sourcev1.StorageOperationFailedCondition,
			sourcev1.FetchFailedCondition,
			sourcev1.ArtifactOutdatedCondition,
			sourcev1.ArtifactInStorageCondition,
			meta.StalledCondition,
			meta.ReconcilingCondition,
		},
	}
}
