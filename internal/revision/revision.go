// Package revision writes what names a state upstream, such as main@sha1:…, and reads semantic versions with the ranges
// that select them. It does not know where revisions come from or what they lead to.
package revision

// Format is <ref>@<pin>, or the pin alone where it was not found by a reference. The reference is a branch, a tag or a full
// reference; the pin is <algorithm>:<hash>, with the hash in lower-case hexadecimal.
func Format(ref, pin string) string {
	if ref == "" {
		return pin
	}
	return ref + "@" + pin
}
