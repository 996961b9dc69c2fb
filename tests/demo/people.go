package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modulesv1 "sluice.dev/sluice/api/modules/v1alpha1"
	sourcev1 "sluice.dev/sluice/api/source/v1"
)

// keyPassword is the password of the key that the story signs with.
const keyPassword = "only for the demo"

// sluice types a command as a person does, shows it with its answer, and gives the answer. The code is what it is to end with.
func (d *demo) sluice(ctx context.Context, code int, args ...string) (string, error) {
	if args[0] != "push" { // It asks no API server.
		args = append(args, "--namespace", namespace)
	}
	d.say("$ sluice %s", join(args))
	command := exec.CommandContext(ctx, filepath.Join(d.dir, "sluice"), args...)
	command.Env = append(os.Environ(), "HOME="+d.dir, "KUBECONFIG="+d.env.Kubeconfig, "LC_ALL=C.UTF-8", "COSIGN_PASSWORD="+keyPassword)
	told, err := command.CombinedOutput()
	d.say("%s", strings.TrimRight(string(told), "\n"))
	exit, ended := errors.AsType[*exec.ExitError](err)
	if err != nil && !ended || err == nil && code != 0 || ended && exit.ExitCode() != code {
		return "", fmt.Errorf("sluice %s: %w, want exit code %d", join(args), err, code)
	}
	return string(told), nil
}

// sluices types commands one after the other, each with what its answer has to say.
func (d *demo) sluices(ctx context.Context, commands ...typed) error {
	for _, one := range commands {
		told, err := d.sluice(ctx, one.code, one.args...)
		if err != nil {
			return err
		}
		if !strings.Contains(told, one.says) {
			return fmt.Errorf("sluice %s does not say %q", join(one.args), one.says)
		}
	}
	return nil
}

// typed is a command, the code that it ends with and something that it says.
type typed struct {
	code int
	says string
	args []string
}

// webManifest are an installation that asks before it upgrades, and one that stays at its version.
const webManifest = `apiVersion: modules.sluice.dev/v1alpha1
kind: ModuleInstallation
metadata: {name: web}
spec:
  module: {name: web, latest: true}
  serviceAccountName: deployer
  config: {substitute: {suffix: -live}}
  upgrade: {mode: Manual}
---
apiVersion: modules.sluice.dev/v1alpha1
kind: ModuleInstallation
metadata: {name: web-pinned}
spec:
  module: {name: web, version: 1.0.0}
  serviceAccountName: deployer
  config: {substitute: {suffix: -pinned}}
`

// folderPublished pushes and signs a folder, makes a release of it, and installs that.
func (d *demo) folderPublished(ctx context.Context) error {
	if err := d.cosignKey(); err != nil {
		return err
	}
	if err := d.publishFolder(ctx, "1.0.0", "blue"); err != nil {
		return err
	}
	if err := d.kubectl(ctx, webManifest, "apply", "-f", "-"); err != nil {
		return err
	}
	if err := errors.Join(d.playDeployment(ctx, "web-live"), d.playDeployment(ctx, "web-pinned")); err != nil {
		return err
	}
	return d.sluices(ctx,
		typed{0, "", []string{"wait", "web", "web-pinned", "--for", "version=1.0.0", "--timeout", "1m"}},
		typed{0, "web-settings-live", []string{"tree", "web"}},
	)
}

// upgradePlanned says beforehand whom the next release moves and what it changes, and takes one installation along.
func (d *demo) upgradePlanned(ctx context.Context) error {
	if err := d.publishFolder(ctx, "2.0.0", "green"); err != nil {
		return err
	}
	content := filepath.Join(d.dir, "web-2.0.0.tar.gz")
	if err := eventually(ctx, "the plan waits", func(ctx context.Context) (bool, error) {
		obj := &modulesv1.ModuleInstallation{}
		err := d.env.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "web"}, obj)
		return err == nil && obj.Status.Pending != nil && obj.Status.Pending.Plan != nil, err
	}); err != nil {
		return err
	}
	if err := d.contentOf(ctx, "web-2.0.0", content); err != nil {
		return err
	}
	return d.sluices(ctx,
		typed{1, "green", []string{"plan", "web", "--artifact", content}},
		typed{0, "Approved sha256:", []string{"approve", "web", "--yes", "--detail", "none", "--artifact", content}},
		typed{0, "", []string{"wait", "web", "--for", "version=2.0.0", "--timeout", "1m"}},
		typed{0, "1.0.0", []string{"why", "web-pinned", "--version", "2.0.0"}},
	)
}

// publishFolder pushes a folder, says whom a release of it would move, and makes it.
func (d *demo) publishFolder(ctx context.Context, version, color string) error {
	folder := filepath.Join(d.dir, "web-"+version)
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'web-settings${suffix}'}\ndata: {color: " + color + "}\n"
	if err := errors.Join(
		os.MkdirAll(folder, 0o700),
		os.WriteFile(filepath.Join(folder, "settings.yaml"), []byte(text), 0o600),
		os.WriteFile(filepath.Join(folder, "server.yaml"), []byte(serverFile), 0o600),
	); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	told, err := d.sluice(ctx, 0, "push", folder, d.registry.URL("modules/web")+":"+version, "--insecure-registry", "--sign-key", d.keyFile())
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(told), "\n")
	release := []string{"release", "web", version, lines[len(lines)-1], "--insecure-registry"}
	template, err := d.sluice(ctx, 0, release...)
	if err != nil {
		return err
	}
	// What is said before it is for people.
	template = template[max(0, strings.Index(template, "apiVersion:")):]
	file := filepath.Join(d.dir, "web-"+version+".yaml")
	if err := os.WriteFile(file, []byte(template), 0o600); err != nil {
		return fmt.Errorf("keep the release: %w", err)
	}
	if version != "1.0.0" {
		if err := d.sluices(ctx, typed{1, "waits for approval", []string{"impact", "-f", file}}); err != nil {
			return err
		}
	}
	_, err = d.sluice(ctx, 0, append(release, "--apply")...)
	return err
}

// contentOf keeps what a release holds, as it is served.
func (d *demo) contentOf(ctx context.Context, template, place string) error {
	release := &modulesv1.ModuleTemplate{}
	if err := d.env.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: template}, release); err != nil {
		return err
	}
	if release.Status.SourceRef == nil {
		return fmt.Errorf("template %s has no source", template)
	}
	source, err := get[sourcev1.OCIRepository](ctx, d, release.Status.SourceRef.Name)
	if err != nil {
		return err
	}
	body, err := d.body(ctx, source.Status.Artifact)
	if err != nil {
		return err
	}
	return os.WriteFile(place, body, 0o600)
}

func (d *demo) keyFile() string { return filepath.Join(d.dir, "cosign.key") }

// cosignKey makes a key as cosign does.
func (d *demo) cosignKey() error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return fmt.Errorf("encode the key: %w", err)
	}
	sealed, err := encrypted.Encrypt(raw, []byte(keyPassword))
	if err != nil {
		return fmt.Errorf("encrypt the key: %w", err)
	}
	return os.WriteFile(d.keyFile(), pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: sealed}), 0o600)
}
