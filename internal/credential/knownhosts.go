package credential

import (
	"bytes"
	"fmt"

	"golang.org/x/crypto/ssh"
)

// What an entry of a known_hosts file may be marked with.
const (
	MarkerAuthority = "cert-authority"
	MarkerRevoked   = "revoked"
)

// KnownHost is an entry of a known_hosts file, see sshd(8).
type KnownHost struct {
	Marker   string
	Patterns []string
	Key      ssh.PublicKey
}

// Hosts reads KnownHosts. One line that cannot be read would, if it were skipped, show only as an unknown host; at least one
// has to name a key that is trusted. An error finishes the sentence that begins with the Secret, and quotes nothing of it.
func (s SSH) Hosts() (hosts []KnownHost, err error) {
	number, trusted := 0, false
	for line := range bytes.Lines(s.KnownHosts) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		marker, patterns, key, _, _, err := ssh.ParseKnownHosts(line)
		if err != nil || marker != "" && marker != MarkerAuthority && marker != MarkerRevoked {
			return nil, badHosts(fmt.Sprintf("has a line %d that is not 'hosts type key'", number))
		}
		trusted = trusted || marker != MarkerRevoked
		hosts = append(hosts, KnownHost{Marker: marker, Patterns: patterns, Key: key})
	}
	if !trusted {
		return nil, badHosts("trusts no host key")
	}
	return hosts, nil
}

func badHosts(problem string) error {
	return fmt.Errorf("has a bad 'known_hosts': it %s; store what ssh-keyscan prints for the host, after checking it", problem)
}
