package packages

import (
	"errors"

	packagesv1 "sluice.dev/sluice/api/packages/v1alpha1"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/git"
	"sluice.dev/sluice/internal/kpt"
	"sluice.dev/sluice/internal/kpt/function"
	"sluice.dev/sluice/internal/kpt/merge"
	"sluice.dev/sluice/internal/pkgrepo"
	"sluice.dev/sluice/internal/variant"
)

// explain gives what went wrong with a change its reason, and says what can help.
func explain(err error) error {
	var judged *failure.Error
	var syntax *kpt.SyntaxError
	var render *function.Error
	switch {
	case errors.As(err, &judged):
		return err
	case errors.Is(err, pkgrepo.ErrTimeout):
		return failure.Retry(packagesv1.RenderFailedReason, err) // It is made after all others then.
	case errors.Is(err, variant.ErrConflict):
		return failure.Stall(packagesv1.ConflictReason, err)
	case errors.Is(err, function.ErrUnknownFunction):
		return failure.Stall(packagesv1.UnknownFunctionReason, err)
	case errors.Is(err, function.ErrUntrusted):
		return failure.Stall(packagesv1.FunctionUntrustedReason, err)
	case errors.Is(err, function.ErrUnavailable), errors.Is(err, function.ErrTimeout), errors.Is(err, function.ErrSchemas),
		errors.Is(err, function.ErrUnknownKind):
		// The machine may have been busy, and the API server may answer again and have new kinds.
		return failure.Retry(packagesv1.RenderFailedReason, err)
	case errors.As(err, &render):
		return failure.Stall(packagesv1.RenderFailedReason, err)
	case errors.As(err, &syntax), errors.Is(err, kpt.ErrTooLarge), errors.Is(err, kpt.ErrSubmodule), errors.Is(err, kpt.ErrNoKptfile),
		errors.Is(err, merge.ErrTooComplex):
		return failure.Stall(packagesv1.InvalidPackageReason, err)
	case errors.Is(err, pkgrepo.ErrNested):
		return failure.Wait(packagesv1.NotOwnedReason, 0, err)
	case errors.Is(err, pkgrepo.ErrName):
		return failure.Stall(packagesv1.InvalidSpecReason, err)
	case errors.Is(err, pkgrepo.ErrLimit):
		return failure.Wait(packagesv1.LimitExceededReason, 0, err)
	case errors.Is(err, pkgrepo.ErrInTheWay):
		return failure.Retry(packagesv1.RefInTheWayReason, err)
	case errors.Is(err, git.ErrRejected), errors.Is(err, pkgrepo.ErrReadOnly):
		return failure.Retry(packagesv1.PushRejectedReason, err)
	case errors.Is(err, pkgrepo.ErrOutside):
		return failure.Wait(packagesv1.FilesOutsidePackageReason, 0, err)
	case errors.Is(err, pkgrepo.ErrOtherBranch):
		return failure.Wait(packagesv1.OtherBranchReason, 0, err)
	case errors.Is(err, pkgrepo.ErrOutOfDate):
		return failure.Wait(packagesv1.OutOfDateReason, 0, err)
	case errors.Is(err, pkgrepo.ErrMoved), errors.Is(err, pkgrepo.ErrGone), errors.Is(err, pkgrepo.ErrExists), errors.Is(err, pkgrepo.ErrProposed):
		// Somebody else was there; what Git has now is looked at anew.
		return failure.Retry(packagesv1.ProgressingReason, err)
	}
	return failure.Retry(packagesv1.PushFailedReason, err)
}
