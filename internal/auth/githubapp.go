package auth

import (
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	sourcev1 "sluice.dev/sluice/api/source/v1"
	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/failure"
	"sluice.dev/sluice/internal/transport"
)

// The keys of a Secret for a GitHub App, as Flux spells them.
const (
	keyAppID           = prefixApp + "ID"
	keyAppInstallation = prefixApp + "InstallationID"
	keyAppOwner        = prefixApp + "InstallationOwner"
	keyAppPrivateKey   = prefixApp + "PrivateKey"
	keyAppBaseURL      = prefixApp + "BaseURL"
)

const (
	// appUser is the user name beside an installation's token.
	appUser = "x-access-token"
	// githubAPI is where the API of github.com is; that of a server of one's own is below its enterprisePath.
	githubAPI      = "https://api.github.com/"
	enterprisePath = "/api/v3/"
	maxAppAnswer   = 64 << 10
	// An App's key has 2048 bits, as GitHub makes it. To sign with many more takes seconds, which nothing breaks off.
	maxAppKey, maxAppKeyBits = 8 << 10, 4096
	// An App's proof of itself is for now, give or take a clock.
	appDrift, appLife = 30 * time.Second, 90 * time.Second
)

// app is an installation of a GitHub App.
type app struct {
	id, installation, owner string
	key                     *rsa.PrivateKey
	api                     *url.URL
	client                  *http.Client
	identity                string // of all that a token depends on
}

// github logs in as the GitHub App of the Secret.
func (s Secrets) github(ctx context.Context, r GitRequest, scheme string, proxy credential.Proxy) (credential.Git, error) {
	if r.SecretName == "" || scheme == schemeSSH {
		return credential.Git{}, failure.Stall(sourcev1.InvalidProviderConfigurationReason, fmt.Errorf(
			"spec.provider github needs an https spec.url, and a Secret in %s with '%s', '%s' and '%s' or '%s'",
			fieldSecret, keyAppID, keyAppPrivateKey, keyAppInstallation, keyAppOwner))
	}
	found, err := s.read(ctx, r.Namespace, r.SecretName, fieldSecret, sourcev1.InvalidProviderConfigurationReason)
	if err != nil {
		return credential.Git{}, err
	}
	tls, err := tlsCredential(found)
	if err != nil {
		return credential.Git{}, err
	}
	a, err := s.app(found, tls, proxy)
	if err != nil {
		return credential.Git{}, err
	}
	login, err := s.clouds.once(ctx, a.identity, func(ctx context.Context) (granted, time.Time, error) {
		return a.enter(ctx, s.clouds.options.Clock.Now())
	})
	if err != nil {
		return credential.Git{}, failure.Retry(sourcev1.AuthenticationFailedReason, fmt.Errorf(
			"log in to %s as the GitHub App %s of secret '%s': %w", a.api.Host, transport.PrintableQuoted(a.id), found.name, safe(err, proxy.Secrets())))
	}
	return credential.Git{Username: login.username, Password: login.password, Principal: login.principal, TLS: tls}, nil
}

// app reads the Secret.
func (s Secrets) app(found secret, tls credential.TLS, proxy credential.Proxy) (a app, err error) {
	if found.has(keyUsername, keyPassword, keyBearerToken) {
		return a, found.errorf("has '%s', '%s' or '%s' beside a GitHub App; remove one of the two ways to log in", keyUsername, keyPassword, keyBearerToken)
	}
	if found.has(keyAppInstallation) == found.has(keyAppOwner) {
		return a, found.errorf("must have one of '%s' and '%s'", keyAppInstallation, keyAppOwner)
	}
	for key, into := range map[string]*string{keyAppID: &a.id, keyAppInstallation: &a.installation, keyAppOwner: &a.owner} {
		if *into, err = found.line(key, maxName); err != nil {
			return a, err
		}
	}
	for key, number := range map[string]string{keyAppID: a.id, keyAppInstallation: a.installation} {
		if _, err := strconv.ParseUint(number, 10, 63); err != nil && (number != "" || key == keyAppID) {
			return a, found.bad(key, "is no number", "store the number that GitHub shows")
		}
	}
	text, err := found.take(keyAppPrivateKey, maxAppKey)
	if err != nil {
		return a, err
	}
	if a.key, err = jwt.ParseRSAPrivateKeyFromPEM(text); err != nil {
		return a, found.bad(keyAppPrivateKey, "is no RSA private key in PEM", "store the key that GitHub made for the App")
	}
	if a.key.N.BitLen() > maxAppKeyBits {
		return a, found.bad(keyAppPrivateKey, fmt.Sprintf("has more than %d bits", maxAppKeyBits), "store the key that GitHub made for the App")
	}
	base, err := found.line(keyAppBaseURL, maxAddress)
	if err != nil {
		return a, err
	}
	if a.api, err = apiOf(base); err != nil {
		return a, found.bad(keyAppBaseURL, "is no https URL", "store https://host of the GitHub server, or take it out for github.com")
	}
	if a.client, err = s.clouds.options.Transport.HTTP(a.api, tls, proxy); err != nil {
		return a, found.errorf("cannot be used: %v", transport.SafeError(err))
	}
	sum := sha256.Sum256(text)
	a.identity = fmt.Sprintf("%q", []string{
		sourcev1.GitProviderGitHub, a.id, a.installation, a.owner, hex.EncodeToString(sum[:]), a.api.String(), tls.Identity(), proxy.Identity(),
	})
	return a, nil
}

// apiOf is where the API of a GitHub server is: below a path of its own, unless the URL says so already.
func apiOf(base string) (*url.URL, error) {
	if base == "" {
		base = githubAPI
	}
	api, err := url.Parse(strings.TrimRight(base, "/") + "/")
	if err != nil || api.Scheme != schemeHTTPS || api.Hostname() == "" || api.User != nil || api.RawQuery != "" || api.Fragment != "" {
		return nil, errors.New("no https URL")
	}
	if !strings.HasPrefix(api.Host, "api.") && !strings.Contains(api.Host, ".api.") && !strings.HasSuffix(api.Path, enterprisePath) {
		api.Path = strings.TrimRight(api.Path, "/") + enterprisePath
	}
	return api, nil
}

// enter gets a token of the installation, see "Authenticating as a GitHub App installation" in GitHub's documentation.
func (a app) enter(ctx context.Context, now time.Time) (granted, time.Time, error) {
	claims := jwt.RegisteredClaims{
		Issuer: a.id, IssuedAt: jwt.NewNumericDate(now.Add(-appDrift)), ExpiresAt: jwt.NewNumericDate(now.Add(appLife)),
	}
	proof, err := jwt.NewWithClaims(jwt.SigningMethodRS256, claims).SignedString(a.key)
	if err != nil {
		return granted{}, time.Time{}, err
	}
	installation := a.installation
	if installation == "" {
		if installation, err = a.find(ctx, proof); err != nil {
			return granted{}, time.Time{}, err
		}
	}
	var answer struct {
		Token   string    `json:"token"`
		Expires time.Time `json:"expires_at"`
	}
	if err := a.ask(ctx, http.MethodPost, "app/installations/"+installation+"/access_tokens", proof, &answer); err != nil {
		return granted{}, time.Time{}, err
	}
	if answer.Token == "" {
		return granted{}, time.Time{}, errors.New("the answer has no token")
	}
	return granted{username: appUser, password: credential.NewSecret(answer.Token)}, answer.Expires, nil
}

// find looks the installation up by its owner, which is an organisation or a user.
func (a app) find(ctx context.Context, proof string) (string, error) {
	var answer struct {
		ID int64 `json:"id"`
	}
	err := errors.New("nobody was asked")
	for _, kind := range []string{"orgs", "users"} {
		if err = a.ask(ctx, http.MethodGet, kind+"/"+url.PathEscape(a.owner)+"/installation", proof, &answer); err == nil {
			return strconv.FormatInt(answer.ID, 10), nil
		}
	}
	return "", fmt.Errorf("find the installation of %s: %w", transport.PrintableQuoted(a.owner), err)
}

// ask makes one request to the API.
func (a app) ask(ctx context.Context, method, name, proof string, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, a.api.String()+name, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+proof)
	request.Header.Set("Accept", "application/vnd.github+json")
	response, err := a.client.Do(request)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // The text around it repeats method and URL.
		}
		return err
	}
	defer func() { _ = response.Body.Close() }() // Reading told whether the data was good.
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAppAnswer))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusCreated {
		var refusal struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal(body, &refusal) // What is no JSON has no message.
		return fmt.Errorf("the server answers %d %s: %s", response.StatusCode, http.StatusText(response.StatusCode), transport.PrintableQuoted(refusal.Message))
	}
	return json.Unmarshal(body, into)
}
