package auth

import (
	"errors"
	"net/url"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
)

// defaultUser is who Git hosts expect to log in.
const defaultUser = "git"

// sshCredential takes the key and the hosts to trust, both of which are needed: a host's key is always checked.
// The user is that of the URL, else of the Secret, else git.
func sshCredential(s secret, user *url.Userinfo) (credential.Git, error) {
	for _, key := range []string{keyIdentity, keyKnownHosts} {
		if !s.has(key) {
			return credential.Git{}, s.errorf(
				"has no '%s', which an ssh URL needs; add it, or use an https URL", key)
		}
	}
	login, err := sshUser(s, user)
	if err != nil {
		return credential.Git{}, err
	}
	hosts, err := s.take(keyKnownHosts, maxKnownHosts)
	if err != nil {
		return credential.Git{}, err
	}
	if err := checkKnownHosts(s, hosts); err != nil {
		return credential.Git{}, err
	}
	identity, passphrase, err := sshIdentity(s)
	if err != nil {
		return credential.Git{}, err
	}
	return credential.Git{SSH: &credential.SSH{
		User:       login,
		PrivateKey: credential.NewSecret(identity),
		Passphrase: credential.NewSecret(passphrase),
		KnownHosts: hosts,
	}}, nil
}

func sshUser(s secret, user *url.Userinfo) (string, error) {
	if name := user.Username(); name != "" {
		return name, nil
	}
	name, err := s.line(keyUsername, maxName)
	if err != nil || name != "" {
		return name, err
	}
	return defaultUser, nil
}

// sshIdentity returns the private key, and the passphrase only where the key needs it: a left-over one is harmless.
func sshIdentity(s secret) (identity, passphrase []byte, err error) {
	identity, err = s.take(keyIdentity, maxPrivateKey)
	if err != nil {
		return nil, nil, err
	}
	passphrase, err = s.take(keyPassword, maxPassword)
	if err != nil {
		return nil, nil, err
	}
	encrypted, err := checkPrivateKey(s, identity, passphrase)
	if !encrypted {
		passphrase = nil
	}
	return identity, passphrase, err
}

// errNoSSHSecret stalls: an ssh URL cannot be used before spec names a Secret.
func errNoSSHSecret() error {
	return failure.Stall(sourcev1.AuthenticationFailedReason, errors.New(
		"spec.url is ssh but spec.secretRef is missing; name a Secret with '"+keyIdentity+"' and '"+keyKnownHosts+"'"))
}
