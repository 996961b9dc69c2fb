package verify

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/notaryproject/notation-go/verifier/trustpolicy"
)

// maxCertificates is how many certificates a trust store may hold.
const maxCertificates = 256

// parsePolicy reads a trust policy. Statements that skip verification lose their stores and identities, which the
// library refuses there and Flux forgives.
func parsePolicy(content []byte) (*trustpolicy.Document, error) {
	if len(content) == 0 {
		return nil, errors.New("it is missing; add it to the Secret")
	}
	var document trustpolicy.Document
	if err := decodeStrictly(content, &document); err != nil {
		return nil, err
	}
	for i := range document.TrustPolicies {
		stated := &document.TrustPolicies[i]
		if stated.SignatureVerification.VerificationLevel == trustpolicy.LevelSkip.Name {
			stated.TrustStores, stated.TrustedIdentities = nil, nil
		}
	}
	return &document, document.Validate()
}

// parseCertificates reads a Secret's certificates, in PEM or DER.
func parseCertificates(entries map[string][]byte) (trustStore, error) {
	var store trustStore
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if !strings.HasSuffix(name, ".crt") && !strings.HasSuffix(name, ".pem") {
			continue
		}
		certificates, err := parseCertificate(entries[name])
		if err != nil {
			return nil, unusable("certificate %q: %v", name, err)
		}
		store = append(store, certificates...)
	}
	if len(store) == 0 {
		return nil, unusable("the Secret has no entry whose name ends in .crt or .pem; add the authority's certificate")
	}
	if len(store) > maxCertificates {
		return nil, unusable("the Secret has %d certificates, more than %d", len(store), maxCertificates)
	}
	return store, nil
}

func parseCertificate(content []byte) ([]*x509.Certificate, error) {
	if block, _ := pem.Decode(content); block == nil {
		certificates, err := x509.ParseCertificates(content)
		if err == nil && len(certificates) == 0 {
			err = errors.New("it is empty")
		}
		return certificates, err
	}
	return parseChain(content, maxCertificates)
}

// parseChain reads at most limit certificates in PEM, and nothing else.
func parseChain(content []byte, limit int) ([]*x509.Certificate, error) {
	var certificates []*x509.Certificate
	for len(bytes.TrimSpace(content)) > 0 {
		var block *pem.Block
		block, content = pem.Decode(content)
		switch {
		case block == nil:
			return nil, errors.New("not all of it is certificates in PEM")
		case block.Type != "CERTIFICATE":
			return nil, fmt.Errorf("it holds a %q", block.Type)
		case len(certificates) == limit:
			return nil, fmt.Errorf("it has more than %d certificates", limit)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certificates = append(certificates, certificate)
	}
	return certificates, nil
}
