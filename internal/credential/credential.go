package credential

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strconv"
)

// TLS is the trust and the client identity of a TLS connection. The zero value trusts the system's authorities
// and presents no certificate.
type TLS struct {
	// CA holds PEM certificates that are trusted beside the system's.
	CA []byte
	// Certificate is the PEM chain of the client, leaf first. It needs Key.
	Certificate []byte
	// Key is the client's private key in PEM.
	Key Secret
	// SkipVerify accepts any certificate of the server. Only an object that asks to be insecure may set it.
	SkipVerify bool
}

// Identity names everything in t by a hash; connections may be shared by those with equal identities.
func (t TLS) Identity() string {
	encoder := newEncoder("tls")
	t.encode(encoder)
	return encoder.sum()
}

func (t TLS) encode(e *encoder) {
	e.bytes(t.CA)
	e.bytes(t.Certificate)
	e.text(t.Key.Reveal())
	e.text(strconv.FormatBool(t.SkipVerify))
}

// SSH is a client's key and the host keys it trusts.
type SSH struct {
	// User is the login name where the URL has none; empty means "git".
	User string
	// PrivateKey is PEM or OpenSSH's format.
	PrivateKey Secret
	// Passphrase opens an encrypted PrivateKey.
	Passphrase Secret
	// KnownHosts is in the format of OpenSSH's known_hosts file, see sshd(8).
	KnownHosts []byte
}

// Git is what a Git server may ask for. A transport takes what is meant for it: SSH is not looked at for an
// http or https URL, the other fields are not looked at for ssh. The zero value is anonymous.
type Git struct {
	Username    string
	Password    Secret
	BearerToken Secret
	// Principal names who the password or token stands for, where these are made anew from time to time; else it is empty.
	Principal string
	TLS       TLS
	SSH       *SSH
	Proxy     Proxy
}

// Identity names everything in g by a hash: what was fetched under one identity may be shown to an equal one.
func (g Git) Identity() string {
	e := newEncoder("git")
	e.text(g.Principal)
	if g.Principal == "" {
		e.text(g.Username)
		e.text(g.Password.Reveal())
		e.text(g.BearerToken.Reveal())
	}
	g.TLS.encode(e)
	g.Proxy.encode(e)
	if g.SSH != nil {
		e.text("ssh")
		e.text(g.SSH.User)
		e.text(g.SSH.PrivateKey.Reveal())
		e.text(g.SSH.Passphrase.Reveal())
		e.bytes(g.SSH.KnownHosts)
	}
	return e.sum()
}

// Secrets lists every secret of g, for Redact.
func (g Git) Secrets() []Secret {
	secrets := append(basic(g.Username, g.Password), g.BearerToken, g.TLS.Key)
	if g.SSH != nil {
		secrets = append(secrets, g.SSH.PrivateKey, g.SSH.Passphrase)
	}
	return append(secrets, g.Proxy.Secrets()...)
}

// basic lists what basic authentication gives away. It sends user and password together; the base64 of the pair holds
// none of them by itself. Without a password a token may stand in the place of the user name.
func basic(username string, password Secret) []Secret {
	secrets := []Secret{password, NewSecret(username + ":" + password.Reveal())}
	if password.IsZero() {
		secrets = append(secrets, NewSecret(username))
	}
	return secrets
}

// encoder hashes fields, each behind its length, so that no two lists of fields have the same encoding.
type encoder struct{ hash hash.Hash }

func newEncoder(kind string) *encoder {
	e := &encoder{hash: sha256.New()}
	e.text(kind)
	return e
}

func (e *encoder) bytes(field []byte) {
	length := binary.BigEndian.AppendUint64(nil, uint64(len(field)))
	e.hash.Write(length) // A hash never fails to write.
	e.hash.Write(field)
}

func (e *encoder) text(field string) { e.bytes([]byte(field)) }

func (e *encoder) sum() string { return hex.EncodeToString(e.hash.Sum(nil)) }
