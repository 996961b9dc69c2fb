package e2e

import (
	"fmt"
	"testing"

	"sluice.dev/sluice/tests/upstream"
)

// TestRepositoriesWithSHA256IDsAreRefused over each transport, with each version, with words that help.
func TestRepositoriesWithSHA256IDsAreRefused(t *testing.T) {
	t.Parallel()
	s := newRunning(t)
	s.upstream.Repository("app", "--object-format=sha256").Commit("main", "First", oneFile("replicas: 1\n"))
	var names []string
	for _, v0 := range []bool{false, true} {
		http, ssh := fmt.Sprintf("http-v0-%t", v0), fmt.Sprintf("ssh-v0-%t", v0)
		server := s.upstream.SSH(upstream.SSHOptions{WithoutV2: v0})
		s.secret(ssh, map[string]string{"identity": s.pem(server.Key(), ""), "known_hosts": string(server.KnownHosts())})
		s.create(http, s.upstream.HTTP(upstream.HTTPOptions{WithoutV2: v0}).URL("app"))
		s.create(ssh, server.URL("app"), secretRef(ssh))
		names = append(names, http, ssh)
	}
	for _, name := range names {
		s.failing(name, fetchFailed("SHA-256 object ids are not supported: mirror it to one with SHA-1 ids"))
	}
}
