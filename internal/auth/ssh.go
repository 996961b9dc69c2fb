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
	identity, err := s.take(keyIdentity, maxPrivateKey)
	if err != nil {
		return credential.Git{}, err
	}
	passphrase, err := s.take(keyPassword, maxPassword)
	if err != nil {
		return credential.Git{}, err
	}
	made := &credential.SSH{
		User: login, PrivateKey: credential.NewSecret(identity), Passphrase: credential.NewSecret(passphrase), KnownHosts: hosts,
	}
	if _, err := made.Hosts(); err != nil {
		return credential.Git{}, s.errorf("%s", err)
	}
	_, encrypted, err := made.Signer()
	if err != nil {
		return credential.Git{}, s.errorf("%s", err)
	}
	if !encrypted {
		made.Passphrase = credential.Secret{} // A left-over one is harmless.
	}
	return credential.Git{SSH: made}, nil
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

// errNoSSHSecret stalls: an ssh URL cannot be used before spec names a Secret.
func errNoSSHSecret() error {
	return failure.Stall(sourcev1.AuthenticationFailedReason, errors.New(
		"spec.url is ssh but spec.secretRef is missing; name a Secret with '"+keyIdentity+"' and '"+keyKnownHosts+"'"))
}
