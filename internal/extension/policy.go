package extension

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
	"sigs.k8s.io/yaml"

	"sluice.dev/sluice/internal/printable"
	"sluice.dev/sluice/internal/registry"
	"sluice.dev/sluice/internal/verify"
)

// policyText is how operators write down what they allow.
type policyText struct {
	Functions []ruleText `json:"functions"`
}

// ruleText allows the functions of a repository, or of all beneath a path, if they are signed.
type ruleText struct {
	// Repository is registry/path, or registry/path/* for all beneath.
	Repository string     `json:"repository"`
	Verify     verifyText `json:"verify"`
	// SecretRef and CertSecretRef name Secrets for the registry, as in an OCIRepository.
	SecretRef     *secretRef `json:"secretRef,omitempty"`
	CertSecretRef *secretRef `json:"certSecretRef,omitempty"`
	Insecure      bool       `json:"insecure,omitempty"`
}

type secretRef struct {
	Name string `json:"name"`
}

// verifyText says who has to have signed: the holder of one of the keys, or one of the identities.
type verifyText struct {
	Keys              map[string]string `json:"keys,omitempty"`
	MatchOIDCIdentity []identityText    `json:"matchOIDCIdentity,omitempty"`
	TrustedRoot       string            `json:"trustedRoot,omitempty"`
}

type identityText struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
}

// policy is what is allowed. Nothing is if it is broken.
type policy struct {
	fingerprint string
	rules       []rule
	broken      error
}

// rule is one allowance. Prefix has a slash at its end where all beneath it is allowed.
type rule struct {
	ruleText

	prefix   string
	verifier verify.Verifier
}

// maxProblem bounds what is told of a policy that cannot be read.
const maxProblem = 400

func (f *Functions) parse(text string) *policy {
	sum := sha256.Sum256([]byte(text))
	made := &policy{fingerprint: hex.EncodeToString(sum[:])}
	var read policyText
	if err := yaml.UnmarshalStrict([]byte(text), &read); err != nil {
		made.broken = errors.New(printable.Line(err.Error(), maxProblem))
		return made
	}
	for i := range read.Functions {
		parsed, err := f.rule(read.Functions[i])
		if err != nil {
			made.broken = fmt.Errorf("functions[%d]: %w", i, err)
			return made
		}
		made.rules = append(made.rules, parsed)
	}
	return made
}

func (f *Functions) rule(text ruleText) (rule, error) {
	made := rule{ruleText: text, prefix: strings.TrimSuffix(text.Repository, "*")}
	host, name, err := registry.Parse("oci://" + strings.TrimSuffix(made.prefix, "/"))
	if err != nil || made.prefix != text.Repository && !strings.HasSuffix(made.prefix, "/") || made.prefix == text.Repository && strings.HasSuffix(made.prefix, "/") {
		return rule{}, fmt.Errorf("repository %q has to be as registry.example.com/functions/one, or registry.example.com/functions/* for all beneath", text.Repository)
	}
	made.prefix = host + "/" + name + made.prefix[len(strings.TrimSuffix(made.prefix, "/")):]
	made.verifier, err = f.verifier(text.Verify)
	if err != nil {
		return rule{}, fmt.Errorf("verify: %w", err)
	}
	return made, nil
}

// verifier asks for a signature in any case: a function that nobody signed is nobody's.
func (f *Functions) verifier(text verifyText) (verify.Verifier, error) {
	switch {
	case len(text.Keys) > 0 == (len(text.MatchOIDCIdentity) > 0):
		return nil, errors.New("either keys or matchOIDCIdentity has to say who signs")
	case len(text.Keys) > 0:
		keys := map[string][]byte{}
		for name, key := range text.Keys {
			keys[strings.TrimSuffix(name, ".pub")+".pub"] = []byte(key)
		}
		return verify.NewCosignKeys(keys, verify.CosignOptions{})
	}
	options := verify.KeylessOptions{TrustedRoot: []byte(text.TrustedRoot), Roots: f.options.Roots}
	for _, who := range text.MatchOIDCIdentity {
		options.Identities = append(options.Identities, verify.Identity(who))
	}
	return verify.NewCosignKeyless(options)
}

// match is the first rule for the repository, nil for none.
func (p *policy) match(repository string) *rule {
	for i := range p.rules {
		prefix := p.rules[i].prefix
		if repository == prefix || strings.HasSuffix(prefix, "/") && strings.HasPrefix(repository, prefix) {
			return &p.rules[i]
		}
	}
	return nil
}

// artifact is a place in a registry, pinned by its content.
type artifact struct {
	host, name string
	digest     digest.Digest
}

func (a artifact) repository() string { return a.host + "/" + a.name }

// parseImage reads registry/name@digest. A tag beside the digest means nothing.
func parseImage(image string) (artifact, error) {
	place, pinned, _ := strings.Cut(image, "@")
	if slash := strings.LastIndexByte(place, '/'); slash >= 0 {
		last, _, _ := strings.Cut(place[slash:], ":")
		place = place[:slash] + last
	}
	host, name, err := registry.Parse("oci://" + place)
	if err != nil {
		return artifact{}, err
	}
	of, err := digest.Parse(pinned)
	if err != nil {
		return artifact{}, fmt.Errorf("the digest cannot be used: %w", err)
	}
	return artifact{host, name, of}, nil
}
