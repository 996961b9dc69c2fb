package upstream

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
)

// ErrNoSSHD says that OpenSSH's server is not installed.
var ErrNoSSHD = errors.New("sshd is missing: install OpenSSH's server (Debian: apt-get install openssh-server)")

// EnsureSSHD gives the path of OpenSSH's sshd, and ErrNoSSHD when it is not installed. When it runs as root it
// also makes the folder /run/sshd, without which sshd does not start.
func EnsureSSHD() (string, error) {
	path, err := findSSHD()
	if err != nil {
		return "", err
	}
	if os.Geteuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			return "", fmt.Errorf("prepare sshd: %w", err)
		}
	}
	return path, nil
}

// findSSHD also looks where users have no search path to. sshd insists on being started by its absolute path.
func findSSHD() (string, error) {
	if path, err := exec.LookPath("sshd"); err == nil {
		return filepath.Abs(path)
	}
	for _, path := range []string{"/usr/sbin/sshd", "/usr/local/sbin/sshd", "/usr/lib/ssh/sshd"} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", ErrNoSSHD
}

const sshdConfig = `# Everything is decided here: nothing of the machine's own configuration is read.
AuthorizedKeysFile "%[1]s/authorized_keys"
AuthenticationMethods publickey
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UsePAM %[2]s
UseDNS no
PidFile none
AcceptEnv GIT_PROTOCOL
ForceCommand "%[1]s/serve"
PermitTTY no
DisableForwarding yes
PrintMotd no
PrintLastLog no
LogLevel VERBOSE
`

// forcedCommand runs git-upload-pack or git-receive-pack and nothing else, inside the folder of the repositories. It notes
// every command as the client sent it, and GIT_PROTOCOL, both ended by a NUL.
const forcedCommand = `#!/bin/sh
printf '%%s\000%%s\000' "$SSH_ORIGINAL_COMMAND" "$GIT_PROTOCOL" >>%[1]s
refuse() {
	echo "$1 allowed here" >&2
	exit 128
}
service=${SSH_ORIGINAL_COMMAND%%%% *}
case "$service" in
git-upload-pack) run="upload-pack --strict" ;;
git-receive-pack) run=receive-pack ;;
*) refuse "only git-upload-pack and git-receive-pack are" ;;
esac
path=${SSH_ORIGINAL_COMMAND#"$service '"}
path=${path%%"'"}
path=${path#/}
if [ "$SSH_ORIGINAL_COMMAND" != "$service '$path'" ] && [ "$SSH_ORIGINAL_COMMAND" != "$service '/$path'" ]; then
	refuse "only git-upload-pack and git-receive-pack are"
fi
case "/$path/" in
*"'"* | */../*) refuse "this path is not" ;;
esac
if [ -e %[2]s ]; then
	unset GIT_PROTOCOL
fi
# shellcheck disable=SC2086 # These are words.
exec env -i %[3]s ${GIT_PROTOCOL:+"GIT_PROTOCOL=$GIT_PROTOCOL"} git $run %[4]s/"$path"
`

// sshdFolder writes what sshd reads: its configuration, the forced command and the authorized keys.
func sshdFolder(dir, root string, client *SSHKey) error {
	pam, err := usePAM()
	if err != nil {
		return err
	}
	var env []string
	for _, variable := range Environ(root) {
		env = append(env, shellQuote(variable))
	}
	script := fmt.Sprintf(forcedCommand, shellQuote(filepath.Join(dir, "commands")),
		shellQuote(filepath.Join(dir, "without-v2")), strings.Join(env, " "), shellQuote(root))
	for name, file := range map[string]struct {
		content string
		mode    fs.FileMode
	}{
		"sshd_config":     {fmt.Sprintf(sshdConfig, dir, pam), 0o600},
		"serve":           {script, 0o700},
		"authorized_keys": {string(client.Authorized()), 0o600},
		"commands":        {"", 0o600},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(file.content), file.mode); err != nil {
			return err
		}
	}
	return nil
}

// usePAM says yes for root with a locked password, as Debian's installer leaves it: without PAM, sshd takes a
// locked password for a locked account and refuses even its keys.
func usePAM() (string, error) {
	if os.Geteuid() != 0 {
		return "no", nil
	}
	shadow, err := os.ReadFile("/etc/shadow")
	if errors.Is(err, os.ErrNotExist) {
		return "no", nil
	}
	if err != nil {
		return "", err
	}
	for line := range strings.SplitSeq(string(shadow), "\n") {
		if strings.HasPrefix(line, "root:!") {
			return "yes", nil
		}
	}
	return "no", nil
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// login is the name to log in with: sshd lets a process log in nobody but its own user.
func login() (string, error) {
	current, err := user.Current()
	if err != nil {
		return "", err
	}
	return current.Username, nil
}
