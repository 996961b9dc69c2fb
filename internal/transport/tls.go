package transport

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"sluice.dev/sluice/internal/credential"
)

// ErrTLSConfig says that a certificate or key cannot be used. Its text names which.
var ErrTLSConfig = errors.New("tls configuration is not usable")

// tlsConfig trusts the system's authorities and those of the credential.
func tlsConfig(c credential.TLS) (*tls.Config, error) {
	config := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: c.SkipVerify, //nolint:gosec // The object asks for it, and no other identity shares the pool.
	}
	if len(c.CA) > 0 {
		roots, err := trust(c.CA)
		if err != nil {
			return nil, fmt.Errorf("%w: ca certificate: %w", ErrTLSConfig, err)
		}
		config.RootCAs = roots
	}
	if len(c.Certificate) > 0 || !c.Key.IsZero() {
		pair, err := KeyPair(c.Certificate, []byte(c.Key.Reveal()))
		if err != nil {
			return nil, fmt.Errorf("%w: client certificate and key: %w", ErrTLSConfig, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// ErrLongKey says that to sign with a key takes too long.
var ErrLongKey = fmt.Errorf("key is an RSA key of more than %d bits", credential.MaxRSABits)

// KeyPair reads a certificate with its key. Errors of the parser may quote what it found in the place of a key.
func KeyPair(certificate, key []byte) (tls.Certificate, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if long, ok := pair.PrivateKey.(*rsa.PrivateKey); ok && long.N.BitLen() > credential.MaxRSABits {
		return tls.Certificate{}, ErrLongKey
	}
	return pair, err
}

// trust returns the system's pool with the PEM certificates added. Every block must be good: an authority that
// was silently left out shows only later, as an unknown one.
func trust(bundle []byte) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	certificates, err := Certificates(bundle)
	for _, certificate := range certificates {
		pool.AddCert(certificate)
	}
	return pool, err
}

// Certificates reads a list of PEM certificates, which has one at least and nothing else.
func Certificates(bundle []byte) (all []*x509.Certificate, err error) {
	for {
		var block *pem.Block
		block, bundle = pem.Decode(bundle)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("PEM block %d is %s, not a certificate", len(all)+1, PrintableQuoted(block.Type))
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("PEM block %d: %w", len(all)+1, err)
		}
		all = append(all, certificate)
	}
	if len(all) == 0 {
		return nil, errors.New("holds no PEM certificate")
	}
	return all, nil
}

// IsTLS tells whether an error is about a certificate, of either side.
func IsTLS(err error) bool {
	_, isOurs := errors.AsType[*tls.CertificateVerificationError](err)
	_, isTheirs := errors.AsType[tls.AlertError](err)
	return isOurs || isTheirs
}
