package verify

import (
	"bytes"
	"strings"
)

// signatureHeader begins the headers of a commit that hold signatures. Git leaves them out of what it signs, also those of
// other hash algorithms, whose names go on; see gitformat-signature(5).
const signatureHeader = "gpgsig"

// SignedObject is a Git object as it was signed, and the signature, which is empty where there is none.
type SignedObject struct {
	Payload, Signature []byte
}

// SignedCommit takes a commit object apart. ErrSignature where it has two signatures: nothing says which of them counts.
func SignedCommit(raw []byte) (SignedObject, error) {
	var object SignedObject
	head, message, whole := bytes.Cut(raw, []byte("\n\n"))
	if whole {
		head = raw[:len(head)+1]
	}
	header := ""
	for line := range bytes.Lines(head) {
		before, after, _ := bytes.Cut(line, []byte{' '})
		if line[0] != ' ' {
			header = string(before)
			if header == signatureHeader && object.Signature != nil {
				return SignedObject{}, refuse("there are two of them")
			}
		}
		switch {
		case header == signatureHeader:
			object.Signature = append(object.Signature, after...)
		case !strings.HasPrefix(header, signatureHeader):
			object.Payload = append(object.Payload, line...)
		}
	}
	if whole {
		object.Payload = append(append(object.Payload, '\n'), message...)
	}
	return object, nil
}

// SignedTag takes a tag object apart: its signature is what follows the last line that begins one.
func SignedTag(raw []byte) SignedObject {
	at, signature := 0, len(raw)
	for line := range bytes.Lines(raw) {
		switch string(bytes.TrimRight(line, "\n")) {
		case pgpHead, sshHead, x509Head:
			signature = at
		}
		at += len(line)
	}
	return SignedObject{Payload: raw[:signature], Signature: raw[signature:]}
}

// VerifyCommit returns the key that signed the commit object. The error is as Verify's.
func (k *GitKeys) VerifyCommit(raw []byte) (key string, err error) {
	object, err := SignedCommit(raw)
	if err != nil {
		return "", err
	}
	return k.Verify(object)
}

// VerifyTag returns the key that signed the tag object. It has to be the tag of that name, of that commit: a server could show any
// signed tag under any name. The error is as Verify's.
func (k *GitKeys) VerifyTag(raw []byte, name, commit string) (key string, err error) {
	head := "object " + commit + "\ntype commit\ntag " + name + "\n"
	if !bytes.HasPrefix(raw, []byte(head)) {
		return "", refuse("the signed tag is for another commit, or has another name: sign the commit with a tag named %q", name)
	}
	return k.Verify(SignedTag(raw))
}
