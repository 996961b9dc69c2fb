package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/publish"
	"sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/view"
)

// patience is how long a registry may take for an answer.
const patience = 2 * time.Minute

// pushed is what was pushed, and where it is.
type pushed struct {
	publish.Outcome `json:",inline"`

	Repository string `json:"repository"`
	Tag        string `json:"tag"`
	DryRun     bool   `json:"dryRun"`
}

// pusher is the flags of a push.
type pusher struct {
	*base
	publish.Order

	key         string
	annotations []string
	keyless     keyless
}

func pushCommand(b *base) *cobra.Command {
	p := &pusher{base: b}
	command := &cobra.Command{
		Use:   "push PATH oci://REPOSITORY:TAG",
		Short: "Push a folder to a registry as an artifact in Flux's format",
		Example: `  sluice push deploy oci://registry.example.com/modules/foo:2.0.0
  sluice push deploy oci://registry.example.com/modules/foo:2.0.0 --sign-key cosign.key
  sluice push deploy oci://registry.example.com/modules/foo:2.0.0 --sign-keyless`,
	}
	flags := command.Flags()
	flags.StringVar(&p.key, "sign-key", "", "File with a private key of cosign's to sign with. COSIGN_PASSWORD is its password.")
	p.keyless.bind(command)
	flags.StringVar(&p.Source, "source", "", "Where the folder comes from. Empty: the URL of Git's remote origin.")
	flags.StringVar(&p.Revision, "revision", "", "Revision of the folder. Empty: that of the commit, as in main@sha1:….")
	flags.StringArrayVar(&p.annotations, "annotation", nil, "Annotation of the artifact, as name=value. May be given several times.")
	flags.BoolVar(&p.AllowDirty, "allow-dirty", false, "Push what is not what the commit has. Nothing is said of a commit then.")
	flags.BoolVar(&p.MoveTag, "move-tag", false, "Take the tag from another artifact that has it.")
	flags.BoolVar(&p.DryRun, "dry-run", false, "Say what would be pushed, and push nothing.")
	flags.BoolVar(&p.Repository.Insecure, "insecure-registry", false, "Speak plain HTTP where the registry does not speak TLS.")
	shown := bindAnswers(command)
	command.RunE = func(cmd *cobra.Command, args []string) error {
		if err := p.read(args); err != nil {
			return err
		}
		done, err := p.push(cmd.Context())
		if err != nil {
			return err
		}
		fmt.Fprintln(b.ErrOut, done.progress(isPlain(environment)))
		return shown.show(b.Out, "Push", done, func(t table) error {
			_, err := fmt.Fprintf(t.out, "%s@%s\n", done.Repository, done.Digest)
			return err
		})
	}
	return command
}

// read takes arguments, flags and environment for what to push.
func (p *pusher) read(args []string) (err error) {
	if len(args) != 2 {
		return usage("a folder and where to push it have to be named", "as PATH oci://REPOSITORY:TAG")
	}
	p.Folder = args[0]
	if p.Repository.Host, p.Repository.Name, p.Tag, err = publish.ParseTarget(args[1]); err != nil {
		return usage(err.Error(), "it is written as oci://REPOSITORY:TAG")
	}
	if p.Tag == "" || strings.Contains(p.Tag, ":") {
		return usage("a tag has to be named", "as in "+strings.TrimSuffix(args[1], "@"+p.Tag)+":1.0.0")
	}
	p.Annotations = map[string]string{}
	for _, one := range p.annotations {
		name, value, ok := strings.Cut(one, "=")
		if !ok || name == "" {
			return usage("--annotation " + one + " is not name=value")
		}
		p.Annotations[name] = value
	}
	if epoch, set := os.LookupEnv("SOURCE_DATE_EPOCH"); set {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return usage("SOURCE_DATE_EPOCH is not a number of seconds")
		}
		p.Created = time.Unix(seconds, 0).UTC().Format(time.RFC3339)
	}
	if err := p.keyless.check(); err != nil {
		return err
	}
	if p.keyless.signs {
		p.Signer, err = p.keyless.signer()
		return err
	}
	return p.readKey()
}

// readKey opens the key, before anything is pushed.
func (p *pusher) readKey() error {
	if p.key == "" {
		return nil
	}
	password, set := os.LookupEnv("COSIGN_PASSWORD")
	if !set {
		return usage("--sign-key needs the key's password", "set COSIGN_PASSWORD")
	}
	content, err := os.ReadFile(p.key)
	if err != nil {
		return &CommandError{Code: ExitUnanswered, What: "read the key", Why: err.Error()}
	}
	if p.Signer, err = publish.ReadKey(content, []byte(password)); err != nil {
		return &CommandError{
			Code: ExitUnanswered, What: "read the key " + p.key, Why: err.Error(), Help: []string{"make one with cosign generate-key-pair, and set COSIGN_PASSWORD"},
		}
	}
	return nil
}

func (p *pusher) push(ctx context.Context) (pushed, error) {
	client, err := registryFor(ctx, &p.Repository)
	if err != nil {
		return pushed{}, err
	}
	p.Repository.Push = true
	done, err := publish.Push(ctx, client, p.Order)
	if err != nil {
		return pushed{}, unpushed("push "+p.Folder, err)
	}
	return pushed{done, p.Repository.Host + "/" + p.Repository.Name, p.Tag, p.DryRun}, nil
}

// registryFor is a client for a repository, which gets the login that Docker keeps.
func registryFor(ctx context.Context, repository *registry.Repository) (*registry.Client, error) {
	login, err := publish.Login(ctx, repository.Host)
	if err != nil {
		return nil, &CommandError{Code: ExitUnanswered, What: "log in to " + repository.Host, Why: err.Error(), Help: []string{"docker login " + repository.Host}}
	}
	repository.Credential = login
	client, err := registry.New(registry.Options{
		// Some registries move a whole layer before they say that they have it.
		Transport: transport.New(transport.Options{AllowLoopback: true, ResponseHeaderTimeout: patience}),
		Remedies:  publish.Remedies(repository.Host),
	})
	if err != nil {
		return nil, &CommandError{Code: ExitUnanswered, What: "speak to " + repository.Host, Why: err.Error()}
	}
	return client, nil
}

// unpushed says why something of a registry was in vain, and what helps.
func unpushed(what string, err error) *CommandError {
	told := &CommandError{Code: ExitUnanswered, What: what, Why: err.Error()}
	switch {
	case errors.Is(err, context.Canceled):
		told.Code, told.Why = ExitInterrupted, "interrupted"
	case errors.Is(err, publish.ErrDirty):
		told.Help = []string{"commit it, or leave it out by a .sourceignore", "--allow-dirty pushes it all the same, and says nothing of a commit"}
	case errors.Is(err, publish.ErrTaken):
		told.Help = []string{"raise the version, or take the tag with --move-tag"}
	}
	return told
}

// progress is one line of what was done.
func (p pushed) progress(plain bool) string {
	files := "files"
	if p.Files == 1 {
		files = "file"
	}
	said := []string{fmt.Sprintf("%d %s, %s", p.Files, files, bytesOf(p.Size))}
	if p.Dirty {
		said = append(said, "no commit's")
	}
	if revision := p.Annotations[ocispec.AnnotationRevision]; revision != "" {
		said = append(said, "revision "+shorten(revision))
	}
	if p.Signed {
		said = append(said, "signed")
	}
	switch {
	case p.DryRun:
		said = append(said, "not pushed")
	case !p.Changed:
		said = append(said, "nothing changed")
	case p.Was != "" && p.Was != p.Digest:
		said = append(said, "the tag was "+shorten(p.Was.String()))
	}
	line := printable.Line(strings.Join(said, ", "), maxProblem)
	if plain {
		return line
	}
	return marks()[view.Ready] + " " + line
}

// bytesOf is a size as people read it.
func bytesOf(size int64) string {
	units := []string{"B", "KiB", "MiB", "GiB"}
	at, value := 0, float64(size)
	for value >= 1024 && at < len(units)-1 {
		at, value = at+1, value/1024
	}
	if at == 0 {
		return strconv.FormatInt(size, 10) + " B"
	}
	return fmt.Sprintf("%.1f %s", value, units[at])
}
