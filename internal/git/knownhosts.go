package git

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // The format of hashed host names is HMAC-SHA1.
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"sluice.dev/sluice/internal/credential"
)

// knownHosts are the entries of a known_hosts file, see sshd(8).
type knownHosts []credential.KnownHost

// certificateSuffix ends the names of the algorithms that present a certificate.
const certificateSuffix = "-cert-v01@openssh.com"

// algorithms are the host key algorithms that the entries for the host can prove, in the order of the supported.
func (k knownHosts) algorithms(host string, supported []string) []string {
	var usable []string
	for _, algorithm := range supported {
		if slices.ContainsFunc(k, func(entry credential.KnownHost) bool {
			return matches(entry, host) && proves(entry, algorithm)
		}) {
			usable = append(usable, algorithm)
		}
	}
	return usable
}

// callback checks host keys. Every refusal is an ErrHostKey.
func (k knownHosts) callback() ssh.HostKeyCallback {
	checker := &ssh.CertChecker{
		IsHostAuthority: func(authority ssh.PublicKey, address string) bool {
			return k.has(credential.MarkerAuthority, hostName(address), authority)
		},
		IsRevoked: func(certificate *ssh.Certificate) bool { return k.revoked(certificate) },
		HostKeyFallback: func(address string, _ net.Addr, key ssh.PublicKey) error {
			if !k.has("", hostName(address), key) {
				return errors.New("known_hosts has another key for this host")
			}
			return nil
		},
	}
	return func(address string, remote net.Addr, key ssh.PublicKey) error {
		host := hostName(address)
		certificate, isCertificate := key.(*ssh.Certificate)
		switch {
		case k.has(credential.MarkerRevoked, host, key),
			isCertificate && k.has(credential.MarkerRevoked, host, certificate.Key),
			isCertificate && k.has(credential.MarkerRevoked, host, certificate.SignatureKey):
			return fmt.Errorf("%w: key %s of %s is revoked", ErrHostKey, ssh.FingerprintSHA256(key), host)
		}
		if err := checker.CheckHostKey(address, remote, key); err != nil {
			return fmt.Errorf("%w: %s key %s of %s: %w", ErrHostKey, key.Type(), ssh.FingerprintSHA256(key), host, err)
		}
		return nil
	}
}

// revoked looks for the certificate's keys under any host name: an authority asked about one host signs for many.
func (k knownHosts) revoked(certificate *ssh.Certificate) bool {
	return slices.ContainsFunc(k, func(entry credential.KnownHost) bool {
		return entry.Marker == credential.MarkerRevoked && slices.Contains(entry.Patterns, "*") &&
			(sameKey(entry.Key, certificate.Key) || sameKey(entry.Key, certificate.SignatureKey))
	})
}

func (k knownHosts) has(marker, host string, key ssh.PublicKey) bool {
	return slices.ContainsFunc(k, func(entry credential.KnownHost) bool {
		return entry.Marker == marker && matches(entry, host) && sameKey(entry.Key, key)
	})
}

func sameKey(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }

// proves tells whether the entry's key may be met with the algorithm.
func proves(entry credential.KnownHost, algorithm string) bool {
	isCertificate := strings.HasSuffix(algorithm, certificateSuffix)
	switch entry.Marker {
	case credential.MarkerAuthority:
		return isCertificate
	case credential.MarkerRevoked:
		return false
	}
	if entry.Key.Type() == ssh.KeyAlgoRSA {
		return algorithm == ssh.KeyAlgoRSASHA256 || algorithm == ssh.KeyAlgoRSASHA512
	}
	return algorithm == entry.Key.Type()
}

// matches tells whether the entry is about the host. As in OpenSSH, one negated pattern that matches decides.
func matches(entry credential.KnownHost, host string) bool {
	found := false
	for _, pattern := range entry.Patterns {
		pattern, negated := strings.CutPrefix(pattern, "!")
		if !matchHost(pattern, host) {
			continue
		}
		if negated {
			return false
		}
		found = true
	}
	return found
}

func matchHost(pattern, host string) bool {
	if strings.HasPrefix(pattern, "|1|") {
		return matchHashed(pattern, host)
	}
	lower := strings.ToLower(pattern)
	if inner, ok := strings.CutSuffix(lower, "]:22"); ok {
		lower = strings.TrimPrefix(inner, "[")
	}
	return matchGlob(lower, host)
}

// matchHashed compares with |1|salt|hash, where hash is the HMAC-SHA1 of the host name.
func matchHashed(pattern, host string) bool {
	fields := strings.Split(pattern, "|")
	if len(fields) != 4 {
		return false
	}
	salt, saltErr := base64.StdEncoding.DecodeString(fields[2])
	want, hashErr := base64.StdEncoding.DecodeString(fields[3])
	if saltErr != nil || hashErr != nil {
		return false
	}
	mac := hmac.New(sha1.New, salt)
	mac.Write([]byte(host))
	return hmac.Equal(mac.Sum(nil), want)
}

// matchGlob knows * and ? and nothing else: a bracket is part of a host with a port. It runs in linear memory and
// quadratic time: after a mismatch only the last star takes one more byte.
func matchGlob(pattern, text string) bool {
	star, resume := -1, 0
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, resume = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			resume++
			p, t = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// hostName is a host as known_hosts writes it: [host]:port, or the bare host for port 22.
func hostName(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return strings.ToLower(address)
	}
	host = strings.ToLower(host)
	if port == sshPort {
		return host
	}
	return "[" + host + "]:" + port
}
