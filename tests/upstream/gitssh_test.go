package upstream_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice.dev/sluice/tests/upstream"
)

// sshEnv makes git use the key and the known hosts and nothing of this machine's.
func sshEnv(t *testing.T, key *upstream.SSHKey, knownHosts []byte) []string {
	t.Helper()
	env, err := key.Environ(t.TempDir(), knownHosts)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// run runs a program and gives all it said.
func run(t *testing.T, program string, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	return string(out), err
}

func TestGitClonesOverSSH(t *testing.T) {
	t.Parallel()
	fixture := upstream.ForTest(t)
	_, commit := sample(t, fixture)
	server := fixture.SSH(upstream.SSHOptions{})
	env := sshEnv(t, server.Key(), server.KnownHosts())

	dir := filepath.Join(t.TempDir(), "clone")
	if _, err := client(t, env, "clone", "-q", server.URL("app"), dir); err != nil {
		t.Fatalf("%v\n%s", err, server.Log())
	}
	head, err := client(t, nil, "-C", dir, "rev-parse", "HEAD")
	if err != nil || strings.TrimSpace(head) != commit {
		t.Errorf("cloned %s, %v, want %s", head, err, commit)
	}
	if err := server.SetV2(false); err != nil {
		t.Fatal(err)
	}
	out, err := client(t, env, "ls-remote", server.URL("app"), "main")
	if err != nil || !strings.HasPrefix(out, commit) {
		t.Errorf("without v2: listed %q, %v, want %s", out, err, commit)
	}

	commands, err := server.Commands()
	if err != nil {
		t.Fatal(err)
	}
	want := upstream.SSHCommand{Line: "git-upload-pack '/app.git'", Protocol: "version=2"}
	if diff := cmp.Diff([]upstream.SSHCommand{want, want}, commands); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	if server.Connections() != 2 || server.BytesOut() == 0 || server.BytesIn() == 0 {
		t.Errorf("%d connections, %d bytes out, %d in", server.Connections(), server.BytesOut(), server.BytesIn())
	}
}

func TestSSHSpeaksTheProtocolAskedFor(t *testing.T) {
	t.Parallel()
	fixture := upstream.ForTest(t)
	sample(t, fixture)
	for name, tc := range map[string]struct {
		reason  string
		without bool
	}{
		"V2": {reason: "sshd hands GIT_PROTOCOL on."},
		"V0": {reason: "The forced command drops it.", without: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := fixture.SSH(upstream.SSHOptions{WithoutV2: tc.without})
			trace := filepath.Join(t.TempDir(), "trace")
			env := append(sshEnv(t, server.Key(), server.KnownHosts()), "GIT_TRACE_PACKET="+trace)
			if _, err := client(t, env, "ls-remote", server.URL("app"), "refs/heads/*"); err != nil {
				t.Fatal(err)
			}
			packets, err := os.ReadFile(trace)
			if err != nil {
				t.Fatal(err)
			}
			v2 := strings.Contains(string(packets), "< version 2")
			if v2 == tc.without {
				t.Errorf("%s\n%s", tc.reason, packets)
			}
		})
	}
}

func TestSSHKeysAreChecked(t *testing.T) {
	t.Parallel()
	fixture := upstream.ForTest(t)
	sample(t, fixture)
	rsa, ecdsa, stranger := fixture.Key(upstream.RSA), fixture.Key(upstream.ECDSA), fixture.Key(upstream.Ed25519)
	hostKeys := []upstream.KeyType{upstream.Ed25519, upstream.ECDSA, upstream.RSA}
	server, other := fixture.SSH(upstream.SSHOptions{HostKeys: hostKeys}), fixture.SSH(upstream.SSHOptions{})
	if err := server.Authorize(server.Key(), rsa, ecdsa); err != nil {
		t.Fatal(err)
	}

	cases := map[string]struct {
		reason string
		key    *upstream.SSHKey
		hosts  []byte
		want   string
	}{
		"Ours":     {"The server's first key is let in.", server.Key(), server.KnownHosts(), ""},
		"RSA":      {"An RSA key is let in.", rsa, server.KnownHosts(), ""},
		"ECDSA":    {"An ECDSA key is let in.", ecdsa, server.KnownHosts(), ""},
		"OneHost":  {"Any one of the host's keys is enough.", rsa, server.KnownHosts(upstream.RSA), ""},
		"Hashed":   {"The host's name may be hashed.", rsa, server.HashedKnownHosts(), ""},
		"Stranger": {"A key that nobody authorized is not let in.", stranger, server.KnownHosts(), "Permission denied (publickey)"},
		"Unknown":  {"A host that nobody knows is not trusted.", rsa, other.KnownHosts(), "Host key verification failed"},
		"NoHosts":  {"Without known hosts there is no trust.", rsa, nil, "Host key verification failed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := client(t, sshEnv(t, tc.key, tc.hosts), "ls-remote", server.URL("app"))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: %v, want %q\n%s", tc.reason, err, tc.want, server.Log())
			}
		})
	}
}

func TestHostKeysAreRotated(t *testing.T) {
	t.Parallel()
	fixture := upstream.ForTest(t)
	sample(t, fixture)
	server := fixture.SSH(upstream.SSHOptions{})
	before := server.KnownHosts()
	if err := server.RotateHostKeys(); err != nil {
		t.Fatal(err)
	}
	_, err := client(t, sshEnv(t, server.Key(), before), "ls-remote", server.URL("app"))
	if err == nil || !strings.Contains(err.Error(), "REMOTE HOST IDENTIFICATION HAS CHANGED") {
		t.Errorf("with the old keys: %v", err)
	}
	if _, err := client(t, sshEnv(t, server.Key(), server.KnownHosts()), "ls-remote", server.URL("app")); err != nil {
		t.Errorf("with the new keys: %v", err)
	}
}

func TestForcedCommandServesRepositoriesAlone(t *testing.T) {
	t.Parallel()
	fixture := upstream.ForTest(t)
	sample(t, fixture)
	server := fixture.SSH(upstream.SSHOptions{})
	env := sshEnv(t, server.Key(), server.KnownHosts())
	ssh := strings.Fields(strings.TrimPrefix(env[0], "GIT_SSH_COMMAND="))
	outside := filepath.Join(t.TempDir(), "touched")

	for _, line := range []string{
		"touch " + outside,
		"git-upload-pack '/app.git'; touch " + outside,
		"git-upload-pack '/app.git' '$(touch " + outside + ")'",
		"git-upload-pack '/../" + filepath.Base(fixture.Root) + "/app.git'",
		"git-upload-pack 'a'\\''b'",
		"git-upload-archive '/app.git'",
	} {
		host, port, _ := strings.Cut(server.Address(), ":")
		args := append(ssh[1:len(ssh):len(ssh)], "-p", port, server.User()+"@"+host, line)
		out, err := run(t, ssh[0], args...)
		if err == nil || !strings.Contains(out, "allowed here") {
			t.Errorf("%q: %q, %v, want a refusal", line, out, err)
		}
		commands, err := server.Commands()
		if err != nil || len(commands) == 0 || commands[len(commands)-1].Line != line {
			t.Errorf("%q: noted %q, %v", line, commands, err)
		}
	}
	if _, err := os.Stat(outside); !os.IsNotExist(err) {
		t.Errorf("a command ran: %v", err)
	}
}

func TestSSHConnectionsFail(t *testing.T) {
	t.Parallel()
	fixture := upstream.ForTest(t)
	repository := fixture.Repository("app")
	repository.Bulk("main", 50, 1<<20)
	server := fixture.SSH(upstream.SSHOptions{})
	env := sshEnv(t, server.Key(), server.KnownHosts())
	clone := func() error {
		_, err := client(t, env, "clone", "-q", server.URL("app"), filepath.Join(t.TempDir(), "clone"))
		return err
	}

	for _, tc := range []struct {
		reason string
		fault  upstream.SSHFault
	}{
		{"The connection ends before the first word.", upstream.DropSSH()},
		{"The connection ends in the handshake.", upstream.CutSSHAfter(500)},
		{"The connection ends in the pack.", upstream.CutSSHAfter(100 << 10)},
	} {
		server.FailNext(1, tc.fault)
		if err := clone(); err == nil {
			t.Errorf("%s The client got its clone.", tc.reason)
		}
		if err := clone(); err != nil {
			t.Errorf("%s Afterwards: %v", tc.reason, err)
		}
	}

	faults := []upstream.SSHFault{upstream.HangSSH(), upstream.HangSSHAfter(100 << 10)}
	ended := make(chan error, len(faults))
	for _, fault := range faults {
		before := server.Connections()
		server.Always(fault)
		go func() { ended <- clone() }()
		await(t, func() bool { return server.Connections() > before })
		server.Heal()
		if err := clone(); err != nil {
			t.Errorf("beside a connection that hangs: %v", err)
		}
		select {
		case err := <-ended:
			t.Errorf("the connection did not hang: %v", err)
		default:
		}
	}
	server.Close()
	for range faults {
		if err := <-ended; err == nil {
			t.Error("the client got its clone from a connection that hung")
		}
	}
}
