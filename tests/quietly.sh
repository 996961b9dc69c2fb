#!/usr/bin/env bash
# Runs a command of Go's without its line about each module that it downloads; on a new machine these are 1,900. One
# line says that it does.
set -uo pipefail
{
	"$@" 2>&1 >&3 | awk '!/^go: downloading / { print; fflush(); next } !told++ { print "go: downloading modules (once)"; fflush() }' >&2
	exit "${PIPESTATUS[0]}"
} 3>&1
