#!/usr/bin/env bash
# Makes sure that the programs the tests use beside Go, git and make are there: sshd as an upstream, gpg as
# the judge of signatures, a C compiler for the race detector, Chromium for the pages; or that the one package is there that is
# named. Installs Debian's packages when it may, else names what to install and stops.
set -euo pipefail
PATH="$PATH:/usr/sbin:/usr/local/sbin"

install() {
	if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
		echo "test: install these first (named as Debian names them): $*" >&2
		exit 1
	fi
	echo "test: installing $*" >&2
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq >&2
	apt-get install -y -qq --no-install-recommends "$@" >&2
}
if [ $# -gt 0 ]; then
	command -v "$1" >/dev/null || install "$1"
	exit 0
fi

# A compiler without the C library's headers is there on many machines; it is of no use.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
printf '#include <stdlib.h>\nint main(void) { return EXIT_SUCCESS; }\n' >"$scratch/probe.c"
compiles() {
	# shellcheck disable=SC2046 # CC may have arguments.
	$(go env CC) -o "$scratch/probe" "$scratch/probe.c" 2>/dev/null
}

# sshd logs in nobody but the user who runs it, and runs its command with the shell that /etc/passwd names for them.
shell=$(awk -F: -v uid="$(id -u)" '$3 == uid { print $7 == "" ? "/bin/sh" : $7; exit }' < <(getent passwd "$(id -u)" || cat /etc/passwd))
if [ -z "$shell" ]; then
	echo "test: user $(id -u) has no entry in /etc/passwd, without which sshd logs nobody in: the tests of SSH will fail" >&2
elif [ "$("$shell" -c 'echo yes' </dev/null 2>/dev/null)" != yes ]; then
	echo "test: the login shell of user $(id -u), $shell, runs no commands: the tests of SSH will fail" >&2
fi

packages=()
command -v sshd >/dev/null && command -v ssh-keygen >/dev/null || packages+=(openssh-server)
command -v chromium-headless-shell >/dev/null || packages+=(chromium-headless-shell)
command -v gpg >/dev/null && command -v gpg-agent >/dev/null || packages+=(gpg gpg-agent)
compiles || packages+=(gcc libc6-dev)
[ -x "$(git --exec-path)/git-http-backend" ] || packages+=(git)
[ ${#packages[@]} -eq 0 ] && exit 0

install "${packages[@]}"
if ! compiles; then
	echo "test: $(go env CC) (go env CC) compiles no C program: the race detector needs one that does" >&2
	exit 1
fi
