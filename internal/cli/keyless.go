package cli

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/publish"
	"sluice.dev/sluice/internal/transport"
	"sluice.dev/sluice/internal/verify"
)

// identityVariable names whom to sign as, by a token, for cosign too.
const identityVariable = "SIGSTORE_ID_TOKEN"

// keyless are the flags for signing without a key that anybody keeps.
type keyless struct {
	signs                bool
	authority, log, root string
	// changed says that a flag was given.
	changed func(name string) bool
}

func (k *keyless) bind(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVar(&k.signs, "sign-keyless", false, "Sign as whom the token of identity in "+identityVariable+" names, with a key that is thrown away. That is written to a public log for good.")
	flags.StringVar(&k.authority, "fulcio-url", "https://fulcio.sigstore.dev", "Authority that issues the certificate.")
	flags.StringVar(&k.log, "rekor-url", "https://rekor.sigstore.dev", "Log that records the signature, of Rekor's version 1.")
	flags.StringVar(&k.root, "trusted-root", "", "File trusted_root.json by which the signature is proved before it is pushed. Empty: that of the public sigstore.")
	command.MarkFlagsMutuallyExclusive("sign-key", "sign-keyless")
	k.changed = flags.Changed
}

// check refuses what is said of a signature that nobody has asked for.
func (k *keyless) check() error {
	for _, name := range []string{"fulcio-url", "rekor-url", "trusted-root"} {
		if !k.signs && k.changed(name) {
			return usage("--"+name+" is for a keyless signature, and nothing would be signed so", "add --sign-keyless")
		}
	}
	return nil
}

// signer reads what it takes, before anything is pushed.
func (k *keyless) signer() (publish.Signer, error) {
	token := strings.TrimSpace(os.Getenv(identityVariable))
	if token == "" {
		return nil, usage("--sign-keyless needs a token of identity", "set "+identityVariable)
	}
	connections := transport.New(transport.Options{AllowLoopback: true, ResponseHeaderTimeout: patience})
	options := publish.KeylessOptions{Token: token, Authority: k.authority, Log: k.log, Client: connections.Anonymous()}
	var err error
	if k.root == "" {
		options.Roots, err = verify.NewTUFRoots(verify.TUFOptions{Client: options.Client})
	} else {
		options.TrustedRoot, err = os.ReadFile(k.root)
	}
	if err != nil {
		return nil, &CommandError{Code: ExitUnanswered, What: "read the trusted root", Why: err.Error()}
	}
	signer, err := publish.NewKeyless(options)
	if err != nil {
		return nil, &CommandError{Code: ExitUnanswered, What: "read " + identityVariable, Why: err.Error()}
	}
	return signer, nil
}
