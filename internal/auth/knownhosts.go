package auth

import (
	"bytes"
	"fmt"

	"golang.org/x/crypto/ssh"
)

const markerRevoked = "revoked"

// checkKnownHosts reads every line as sshd(8) describes them. One line that cannot be read would, if it were skipped,
// show only as an unknown host; at least one line has to name a key that is trusted.
func checkKnownHosts(s secret, text []byte) error {
	number, trusted := 0, 0
	for line := range bytes.Lines(text) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		marker, _, _, _, _, err := ssh.ParseKnownHosts(line)
		if err != nil {
			return s.bad(keyKnownHosts, fmt.Sprintf("has a line %d that is not 'hosts type key'", number),
				"store what ssh-keyscan prints for the host, after checking it")
		}
		if marker != markerRevoked {
			trusted++
		}
	}
	if trusted == 0 {
		return s.bad(keyKnownHosts, "trusts no host key",
			"store what ssh-keyscan prints for the host, after checking it")
	}
	return nil
}
