package git

import "strings"

// unsafeName says why a name in a tree is refused, or nothing. These are the names by which an entry could leave
// its directory or reach a .git directory on some file system; names that Windows merely reserves do no harm.
func unsafeName(name string) string {
	switch {
	case name == "":
		return "empty name"
	case strings.ContainsAny(name, "/\x00"):
		return "name with a slash or a NUL"
	}
	// On Windows a backslash separates directories.
	for part := range strings.SplitSeq(name, `\`) {
		switch {
		case part == "." || part == "..":
			return "name that leads out of its directory"
		case isDotGit(part):
			return "name that means .git on some file system"
		}
	}
	return ""
}

// isDotGit knows .git in the disguises that NTFS and HFS+ see through: any case, the short name git~1, dots,
// spaces and a stream name at the end, code points that HFS+ ignores.
func isDotGit(name string) bool {
	plain := strings.ToLower(strings.Map(dropIgnorable, name))
	plain, _, _ = strings.Cut(plain, ":")
	plain = strings.TrimRight(plain, ". ")
	return plain == ".git" || plain == "git~1"
}

// dropIgnorable drops the code points that HFS+ ignores in names.
func dropIgnorable(r rune) rune {
	switch {
	case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
		return -1
	}
	return r
}
