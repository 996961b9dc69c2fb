package auth

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
)

const (
	keyServiceAccount = "serviceaccount"
	// maxServiceAccount is the size of a key file at most, in bytes.
	maxServiceAccount = 64 << 10
	// googleScope lets read objects, and nothing else.
	googleScope = "https://www.googleapis.com/auth/devstorage.read_only"
	// googleGrant and googleLife are of RFC 7523 and Google's documentation of service accounts.
	googleGrant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	googleLife  = time.Hour
)

// googleTokenHosts are Google's own, where keys of service accounts are exchanged for tokens.
func googleTokenHosts() []string {
	return []string{"oauth2.googleapis.com", "accounts.google.com", "www.googleapis.com", "sts.googleapis.com"}
}

// googleBucket takes a key of a service account from a Secret, or the workload's identity.
func (s Secrets) googleBucket(ctx context.Context, r BucketRequest, proxy credential.Proxy) (found credential.Bucket, err error) {
	if r.SecretName == "" {
		login, err := s.bucketLogin(ctx, r, proxy)
		return credential.Bucket{Bearer: login.bearer, Principal: login.principal}, err
	}
	secret, err := s.bucketSecret(ctx, r.Namespace, r.SecretName, fieldSecret)
	if err != nil {
		return found, err
	}
	if !secret.has(keyServiceAccount) {
		return found, invalid("invalid '%s' secret data: required fields '%s'", r.SecretName, keyServiceAccount)
	}
	text, err := secret.take(keyServiceAccount, maxServiceAccount)
	if err != nil {
		return found, err
	}
	key, err := s.clouds.serviceAccount(secret, text)
	if err != nil {
		return found, err
	}
	client, err := s.clouds.options.Transport.HTTP(key.at, credential.TLS{}, proxy)
	if err != nil {
		return found, invalid("failed to get proxy URL: %w", transport.SafeError(err))
	}
	sum := sha256.Sum256(text)
	login, err := s.clouds.once(ctx, fmt.Sprintf("google %x %s", sum, proxy.Identity()), func(ctx context.Context) (granted, time.Time, error) {
		return key.enter(ctx, client, s.clouds.options.Clock.Now())
	})
	if err != nil {
		return found, invalid("log in to %s as the service account of secret '%s': %w", key.at.Host, secret.name, safe(err, proxy.Secrets()))
	}
	return credential.Bucket{Bearer: login.bearer, Principal: login.principal}, nil
}

// serviceAccountKey is a key file. Of the other types of files that Google's libraries read some name files, commands and
// URLs that the process would read, run and ask.
type serviceAccountKey struct {
	Type  string `json:"type"`
	Email string `json:"client_email"`
	ID    string `json:"private_key_id"`
	Key   string `json:"private_key"`
	Token string `json:"token_uri"`

	at *url.URL
}

func (c *clouds) serviceAccount(found secret, text []byte) (key serviceAccountKey, err error) {
	if json.Unmarshal(text, &key) != nil {
		return key, found.bad(keyServiceAccount, "is no JSON", "store the key file that Google made for the service account")
	}
	if key.Type != "service_account" {
		return key, found.bad(keyServiceAccount, "is not of type service_account", "store a key of a service account; other types name files and URLs that are not read here")
	}
	if key.Token == "" {
		key.Token = "https://oauth2.googleapis.com/token"
	}
	key.at, err = url.Parse(key.Token)
	if err != nil || key.at.User != nil || !slices.Contains(googleTokenHosts(), key.at.Host) && !slices.Contains(c.options.GoogleTokenHosts, key.at.Host) ||
		key.at.Scheme != schemeHTTPS && !slices.Contains(c.options.GoogleTokenHosts, key.at.Host) {
		return key, found.bad(keyServiceAccount, "has a token_uri that is none of Google's",
			"store the key file as Google made it, or ask the operator to allow the host with --gcp-token-hosts")
	}
	if key.Email == "" || key.Key == "" {
		return key, found.bad(keyServiceAccount, "has no client_email or private_key", "store the key file that Google made for the service account")
	}
	return key, nil
}

// enter exchanges a proof that is signed with the key for a token.
func (k serviceAccountKey) enter(ctx context.Context, client *http.Client, now time.Time) (granted, time.Time, error) {
	private, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(k.Key))
	if err != nil || private.N.BitLen() > credential.MaxRSABits {
		return granted{}, time.Time{}, errors.New("its private_key is no RSA key in PEM")
	}
	proof := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{
		"iss": k.Email, "scope": googleScope, "aud": k.Token, "iat": now.Unix(), "exp": now.Add(googleLife).Unix(),
	})
	if k.ID != "" {
		proof.Header["kid"] = k.ID
	}
	signed, err := proof.SignedString(private)
	if err != nil {
		return granted{}, time.Time{}, err
	}
	body, err := postForm(ctx, client, k.Token, url.Values{"grant_type": {googleGrant}, "assertion": {signed}})
	if err != nil {
		return granted{}, time.Time{}, err
	}
	return bearerOf(body, now)
}

// bearerOf reads an answer as of RFC 6749, section 5.1.
func bearerOf(body []byte, now time.Time) (granted, time.Time, error) {
	var answer struct {
		Token   string `json:"access_token"`
		Seconds int64  `json:"expires_in"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Token == "" {
		return granted{}, time.Time{}, errors.New("the answer has no token")
	}
	return granted{bearer: credential.NewSecret(answer.Token)}, now.Add(time.Duration(min(max(answer.Seconds, 0), 1<<20)) * time.Second), nil
}
