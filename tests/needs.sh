#!/usr/bin/env bash
# Makes sure that the programs the tests use beside Go, git and make are there: sshd as an upstream, a C compiler for
# the race detector. Installs Debian's packages when it may, else names what to install and stops.
set -euo pipefail
PATH="$PATH:/usr/sbin:/usr/local/sbin"

packages=()
command -v sshd >/dev/null && command -v ssh-keygen >/dev/null || packages+=(openssh-server)
command -v "$(go env CC)" >/dev/null || packages+=(gcc libc6-dev)
[ -x "$(git --exec-path)/git-http-backend" ] || packages+=(git)
[ ${#packages[@]} -eq 0 ] && exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
	echo "test: install these first (named as Debian names them): ${packages[*]}" >&2
	exit 1
fi
echo "test: installing ${packages[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq >&2
apt-get install -y -qq --no-install-recommends "${packages[@]}" >&2
