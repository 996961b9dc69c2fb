package auth

import (
	"encoding/pem"
	"errors"
	"fmt"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
)

// tlsCredential takes the authority and the client certificate, checked as far as bytes alone allow.
func tlsCredential(s secret) (credential.TLS, error) {
	ca, err := authority(s)
	if err != nil {
		return credential.TLS{}, err
	}
	certificate, err := s.take(keyCertificate, maxCertificate)
	if err != nil {
		return credential.TLS{}, err
	}
	key, err := s.take(keyKey, maxPrivateKey)
	if err != nil {
		return credential.TLS{}, err
	}
	if s.has(keyCertificate) != s.has(keyKey) {
		return credential.TLS{}, s.errorf("has only one of '%s' and '%s'; add the other, or remove it",
			keyCertificate, keyKey)
	}
	if s.has(keyCertificate) {
		if err := checkPair(s, certificate, key); err != nil {
			return credential.TLS{}, err
		}
	}
	return credential.TLS{CA: ca, Certificate: certificate, Key: credential.NewSecret(key)}, nil
}

// authority prefers ca.crt to the older key.
func authority(s secret) ([]byte, error) {
	key := keyCA
	if !s.has(keyCA) {
		key = keyOldCA
	}
	ca, err := s.take(key, maxCA)
	if err != nil || len(ca) == 0 {
		return nil, err
	}
	if _, err := transport.Certificates(ca); err != nil {
		return nil, s.bad(key, "is not a list of PEM certificates", "store the authority's certificates in PEM")
	}
	return ca, nil
}

// checkPair does not pass on the parser's error, which may quote what it found in the place of a key.
func checkPair(s secret, certificate, key []byte) error {
	if _, err := transport.Certificates(certificate); err != nil {
		return s.bad(keyCertificate, "is not a PEM certificate", "store the client's certificate in PEM, leaf first")
	}
	if block, _ := pem.Decode(key); block == nil {
		return s.bad(keyKey, "is not a PEM private key", "store the key of '"+keyCertificate+"' in PEM")
	}
	_, err := transport.KeyPair(certificate, key)
	if errors.Is(err, transport.ErrLongKey) {
		return s.bad(keyKey, fmt.Sprintf("is an RSA key of more than %d bits", credential.MaxRSABits), "use a shorter one, or one of ECDSA")
	}
	if err != nil {
		return s.bad(keyKey, "is not the private key of '"+keyCertificate+"', or is encrypted",
			"store the two that belong together, the key without a passphrase")
	}
	return nil
}
