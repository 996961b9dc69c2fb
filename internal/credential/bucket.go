package credential

import (
	"net/url"
	"strings"
)

// Bucket is what an object storage may ask for, and the way to it. Each kind of storage takes what is meant for it. The zero
// value is anonymous.
type Bucket struct {
	// AccessKey, SecretKey and SessionToken sign requests of S3.
	AccessKey    string
	SecretKey    Secret
	SessionToken Secret
	// Bearer is sent to Google's and Azure's storage.
	Bearer Secret
	// Account and AccountKey sign requests of Azure.
	Account    string
	AccountKey Secret
	// Query is added to the requests to Azure: a shared access signature.
	Query Secret
	// Principal names who the token stands for, where it is made anew from time to time; else it is empty.
	Principal string
	TLS       TLS
	Proxy     Proxy
}

// Identity names everything in b by a hash: what was fetched under one identity may be shown to an equal one.
func (b Bucket) Identity() string {
	e := newEncoder("bucket")
	e.text(b.Principal)
	if b.Principal == "" {
		e.text(b.AccessKey)
		e.text(b.SecretKey.Reveal())
		e.text(b.SessionToken.Reveal())
		e.text(b.Bearer.Reveal())
		e.text(b.Account)
		e.text(b.AccountKey.Reveal())
		e.text(b.Query.Reveal())
	}
	b.TLS.encode(e)
	b.Proxy.encode(e)
	return e.sum()
}

// Session names b as Identity does, and the present token beside: a client that holds the one before is of no more use.
func (b Bucket) Session() string {
	e := newEncoder("session")
	e.text(b.Identity())
	e.text(b.AccessKey)
	e.text(b.SecretKey.Reveal())
	e.text(b.SessionToken.Reveal())
	e.text(b.Bearer.Reveal())
	return e.sum()
}

// Secrets lists every secret of b, for Redact.
func (b Bucket) Secrets() []Secret {
	secrets := []Secret{b.SecretKey, b.SessionToken, b.Bearer, b.AccountKey, b.Query, b.TLS.Key}
	for part := range strings.SplitSeq(strings.TrimPrefix(b.Query.Reveal(), "?"), "&") {
		// The signature alone is enough for whoever knows what it signs.
		if raw, ok := strings.CutPrefix(part, "sig="); ok {
			plain, _ := url.QueryUnescape(raw) // What cannot be unescaped is a secret as it is.
			secrets = append(secrets, NewSecret(raw), NewSecret(plain))
		}
	}
	return append(secrets, b.Proxy.Secrets()...)
}
