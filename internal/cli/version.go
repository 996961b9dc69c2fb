package cli

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/version"
)

// versions are what runs here and there.
type versions struct {
	Client   build          `json:"client"`
	Server   *version.Info  `json:"server,omitempty"`
	Managers []managerImage `json:"managers"`
}

// build is this program.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// managerImage is what a Deployment of the controllers runs.
type managerImage struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Image     string `json:"image"`
	Ready     int32  `json:"ready"`
}

func versionCommand(b *base) *cobra.Command {
	var local bool
	command := &cobra.Command{
		Use:               "version",
		Short:             "Show the versions of this program, the API server and the controllers",
		Example:           "  sluice version --client",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	shown := bindAnswers(command)
	command.Flags().BoolVar(&local, "client", false, "Show this program's version alone, and ask no API server.")
	asking := b.on(command, func(ctx context.Context, _ []string) error {
		told := versions{Client: thisBuild()}
		asked := told.ask(ctx, b)
		if err := shown.show(b.Out, "Versions", told, told.print); err != nil {
			return err
		}
		return asked
	})
	ask := asking.RunE
	asking.RunE = func(cmd *cobra.Command, args []string) error {
		if !local {
			return ask(cmd, args)
		}
		told := versions{Client: thisBuild()}
		return shown.show(b.Out, "Versions", told, told.print)
	}
	return asking
}

// thisBuild is what the Go toolchain put into the program.
func thisBuild() build {
	made := build{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return made
	}
	made.Version = cmp.Or(info.Main.Version, made.Version)
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			made.Commit = setting.Value
		}
	}
	return made
}

// String is the program for people.
func (b build) String() string {
	told := b.Version
	if b.Commit != "" {
		told += ", commit " + b.Commit[:min(hashed, len(b.Commit))]
	}
	return told + ", " + b.Go + ", " + b.Platform
}

// String is what runs for people.
func (m managerImage) String() string {
	return fmt.Sprintf("%s, Deployment %s/%s, %d ready", m.Image, m.Namespace, m.Name, m.Ready)
}

// ask adds what the API server says.
func (v *versions) ask(ctx context.Context, b *base) error {
	discovery, err := b.config.ToDiscoveryClient()
	if err != nil {
		return explain("reach the API server", err, "")
	}
	if v.Server, err = discovery.ServerVersion(); err != nil {
		return explain("ask for the API server's version", err, "system:public-info-viewer")
	}
	v.Managers, err = b.images(ctx)
	return err
}

// images are what the controllers run.
func (s *session) images(ctx context.Context) (all []managerImage, err error) {
	found, err := s.managers(ctx, "")
	for i := range found {
		if containers := found[i].Spec.Template.Spec.Containers; len(containers) > 0 {
			all = append(all, managerImage{found[i].Namespace, found[i].Name, containers[0].Image, found[i].Status.ReadyReplicas})
		}
	}
	return all, err
}

func (v *versions) print(t table) error {
	rows := [][]string{{"client", v.Client.String()}}
	if v.Server != nil {
		rows = append(rows, []string{"server", "Kubernetes " + v.Server.GitVersion})
	}
	for _, one := range v.Managers {
		rows = append(rows, []string{"manager", one.String()})
	}
	return t.rows(rows)
}
