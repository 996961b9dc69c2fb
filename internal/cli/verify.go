package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/engine/fetch"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/plan"
	"sluice.dev/sluice/internal/rebuild"
)

// verification is whether what is served of a source is what upstream has.
type verification struct {
	Object   ref    `json:"object"`
	Revision string `json:"revision,omitempty"`
	Digest   string `json:"digest,omitempty"`

	checkup `json:",inline"`
}

// verifier is one call of verify.
type verifier struct {
	*base

	file     string
	loopback bool
	timeout  time.Duration
	told     verification
}

// maxServed is how much is read of what is served, as consumers do.
const maxServed = 256 << 20

func verifyCommand(b *base) *cobra.Command {
	v := &verifier{base: b}
	command := &cobra.Command{
		Use:   "verify KIND/NAME | KIND NAME",
		Short: "Rebuild the artifact of a source from upstream, and compare it with what is served",
		Example: `  sluice verify gitrepository/app -n team-a
  sluice verify ocirepository/redis --artifact redis.tar.gz`,
		ValidArgsFunction: b.complete(kindNames()),
	}
	shown := bindAnswers(command)
	flags := command.Flags()
	flags.StringVar(&v.file, "artifact", "", "File with what is served. Empty: it is read through the API server.")
	flags.BoolVar(&v.loopback, "egress-allow-loopback", false, "Let upstream be on this machine.")
	flags.DurationVar(&v.timeout, timeoutFlag, 5*time.Minute, "How long to read what is served, and from upstream, together.")
	return b.on(command, func(ctx context.Context, args []string) error {
		inTime, stop, err := (&waiting{timeout: v.timeout}).within(ctx)
		if err != nil {
			return err
		}
		defer stop()
		if err := v.run(inTime, args); err != nil {
			return late(inTime, "verify "+strings.Join(args, " "), err)
		}
		err = shown.show(b.Out, "Verification", v.told, func(t table) error {
			t.line("", v.told.Object.String()+"  "+shorten(v.told.Revision))
			return v.told.print(t)
		})
		return errors.Join(err, v.told.verdict())
	})
}

func (v *verifier) run(ctx context.Context, args []string) error {
	k, name, err := one(args, "gitrepositories", "ocirepositories")
	if err != nil {
		return err
	}
	obj, err := v.named(ctx, k, name)
	if err != nil {
		return err
	}
	var source interface {
		client.Object
		GetArtifact() *meta.Artifact
	} = &sourcev1.GitRepository{}
	if k.Kind == sourcev1.OCIRepositoryKind {
		source = &sourcev1.OCIRepository{}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, source); err != nil {
		return &CommandError{Code: ExitUnanswered, What: "read " + refOf(obj).String(), Why: err.Error()}
	}
	artifact := fetch.Artifact{}
	if made := source.GetArtifact(); made != nil {
		artifact = fetch.Artifact{URL: made.URL, Digest: made.Digest, Revision: made.Revision}
	}
	v.told.Object, v.told.Revision, v.told.Digest = refOf(obj), artifact.Revision, artifact.Digest
	if artifact.Digest == "" {
		return &CommandError{Code: ExitUnanswered, What: "verify " + v.told.Object.String(), Why: "it has no artifact"}
	}
	if _, err := digest.Parse(artifact.Digest); err != nil {
		return &CommandError{Code: ExitUnanswered, What: "verify " + v.told.Object.String(), Why: "the digest in its status, " + artifact.Digest + ", is none: " + err.Error()}
	}
	dir, err := os.MkdirTemp("", "sluice-verify-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return v.compare(ctx, source, artifact, dir)
}

// compare looks at what is served and at what upstream has, and says where they differ.
func (v *verifier) compare(ctx context.Context, source client.Object, artifact fetch.Artifact, dir string) error {
	served, err := v.served(ctx, artifact, dir)
	if err != nil {
		return err
	}
	made, err := (&rebuild.Rebuilder{Reader: v.WithWatch, Dir: dir, AllowLoopback: v.loopback}).Rebuild(ctx, source)
	switch {
	case ctx.Err() != nil:
		return explain("rebuild the artifact", ctx.Err(), "")
	case err != nil && isUnproven(err):
		v.told.note("Signature", false, err.Error(), "what is served may have been stored under another policy; the rest was not looked at")
		return nil
	case err != nil:
		v.told.Checks = append(v.told.Checks, finding{Check: "Upstream", Message: err.Error(), Help: "the rest was not looked at"})
		return nil
	}
	defer func() { _ = made.Close() }()
	if made.VerifiedBy != "" {
		v.told.note("Signature", true, "verified signature of "+made.VerifiedBy, "")
	}
	same := made.Digest.String() == artifact.Digest
	if same {
		v.told.note("Upstream", true, "rebuilt, and the same", "")
		if v.told.allGood() {
			return nil
		}
	} else if made.Revision != artifact.Revision && isGitTag(source) {
		v.told.Checks = append(v.told.Checks, finding{Check: "Upstream", Message: "it has moved to " + made.Revision, Help: "sluice reconcile brings that in; verify it then"})
		return nil
	}
	where, err := v.difference(ctx, served, made)
	switch {
	case ctx.Err() != nil:
		return explain("compare the files", ctx.Err(), "")
	case err != nil:
		v.told.Checks = append(v.told.Checks, finding{Check: "Files", Message: "they cannot be compared: " + err.Error()})
	case where != "":
		v.told.note("Files", false, "the first in which what is served differs is "+where, "suspend what installs it, and look at what has written to the storage")
	case same:
		v.told.note("Files", true, "all are the same; other bytes of the archive differ", "")
	default:
		v.told.note("Upstream", true, "rebuilt: all files are the same, and packed as another version of the program does it", "")
	}
	return nil
}

// isUnproven says that the signature which the spec asks for is not there, or not by whom it trusts.
func isUnproven(err error) bool {
	return slices.Contains([]string{
		sourcev1.VerificationErrorReason, sourcev1.InvalidGitObjectReason, sourcev1.InvalidTagSignatureReason, sourcev1.InvalidCommitSignatureReason,
	}, failure.Of(err).Reason)
}

// isGitTag says that the object follows what may point elsewhere by now, and is not pinned to a commit.
func isGitTag(source client.Object) bool {
	repository, isGit := source.(*sourcev1.GitRepository)
	return isGit && repository.Spec.Reference != nil && (repository.Spec.Reference.Tag != "" || repository.Spec.Reference.SemVer != "" || repository.Spec.Reference.Name != "")
}

// served reads what consumers get into a file, and compares its digest with that in status.
func (v *verifier) served(ctx context.Context, artifact fetch.Artifact, dir string) (string, error) {
	content := &plan.Content{Core: v.core, File: v.file}
	response, err := content.Get(ctx, artifact) //nolint:bodyclose // keep closes it.
	if refused := content.Refused(); apierrors.IsForbidden(refused) {
		told := explain("read what is served", refused, "sluice-artifacts")
		told.Help = append(told.Help, "or have it in a file, and name that with --artifact")
		return "", told
	}
	if err != nil {
		return "", &CommandError{Code: ExitUnanswered, What: "read what is served", Why: err.Error(), Help: []string{"or have it in a file, and name that with --artifact"}}
	}
	place, sum, err := v.keep(response, artifact.Digest, dir)
	if err != nil {
		return "", err
	}
	good := sum == artifact.Digest
	message := "as status says"
	if !good {
		message = "it has digest " + sum + ", and status says " + artifact.Digest
	}
	v.told.note("Served", good, message, "whoever takes it checks the digest, and refuses it; look at what serves it, and at the storage")
	return place, nil
}

// keep writes a body into a file, and gives its digest.
func (v *verifier) keep(response *http.Response, like, dir string) (place, sum string, err error) {
	defer func() { _ = response.Body.Close() }()
	file, err := os.CreateTemp(dir, "served-")
	if err != nil {
		return "", "", fmt.Errorf("make a file: %w", err)
	}
	digester := digest.Digest(like).Algorithm().Digester()
	n, err := io.Copy(io.MultiWriter(file, digester.Hash()), io.LimitReader(response.Body, maxServed+1))
	err = errors.Join(err, file.Close())
	if err == nil && n > maxServed {
		err = fmt.Errorf("it has more than %d MiB", maxServed>>20)
	}
	if err != nil {
		return "", "", &CommandError{Code: ExitUnanswered, What: "read what is served", Why: err.Error()}
	}
	return file.Name(), digester.Digest().String(), nil
}

// difference is the first file in which what is served differs from what was rebuilt.
func (v *verifier) difference(ctx context.Context, served string, made rebuild.Artifact) (string, error) {
	theirs, err := os.Open(served)
	if err != nil {
		return "", fmt.Errorf("read what is served: %w", err)
	}
	defer func() { _ = theirs.Close() }()
	ours, err := made.Open(ctx)
	if err != nil {
		return "", fmt.Errorf("read what was rebuilt: %w", err)
	}
	defer func() { _ = ours.Close() }()
	return rebuild.Difference(theirs, ours) //nolint:wrapcheck // It says what could not be read.
}
