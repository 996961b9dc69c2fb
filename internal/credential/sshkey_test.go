package credential

import (
	"strings"
	"testing"
)

// FuzzPrivateKeyRounds: the header of a key is read before the key is believed.
func FuzzPrivateKeyRounds(f *testing.F) {
	f.Add("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\n-----END OPENSSH PRIVATE KEY-----\n", "p")
	f.Add("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n", "p")
	f.Fuzz(func(t *testing.T, key, passphrase string) {
		if rounds([]byte(key)) > 64 {
			return // It would be refused or take long, not fail.
		}
		_, _, err := SSH{PrivateKey: NewSecret(key), Passphrase: NewSecret(passphrase)}.Signer()
		if err != nil && !strings.HasPrefix(err.Error(), "has a") {
			t.Errorf("the words are a parser's: %v", err)
		}
	})
}
