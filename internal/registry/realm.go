package registry

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"sluice.dev/sluice/internal/credential"
	"sluice.dev/sluice/internal/transport"
)

// maxRealm bounds the URL of a token server.
const maxRealm = 2048

// realmRule says where tokens for one registry may be asked for. Whoever answers there learns the credential.
type realmRule struct {
	registry *url.URL
	// hosts may hand out tokens for any registry.
	hosts []string
}

// parse returns the token server that the registry names. ErrRealm when nothing is sent there.
func (r realmRule) parse(raw string) (*url.URL, error) {
	realm, err := url.Parse(raw)
	switch {
	case raw == "":
		return nil, r.refuse(raw, "the registry names none")
	case len(raw) > maxRealm:
		return nil, r.refuse(raw, "its url is too long")
	case err != nil || strings.ContainsFunc(raw, outsideURL):
		return nil, r.refuse(raw, "its url is malformed")
	}
	return realm, r.check(realm)
}

// outsideURL are characters that a URL does not hold, and that some reader takes for others.
func outsideURL(char rune) bool { return char <= ' ' || char >= 0x7f || char == '\\' }

// check also judges each redirect of a token request.
func (r realmRule) check(realm *url.URL) error {
	host := strings.ToLower(realm.Hostname())
	address, notAddress := netip.ParseAddr(host)
	switch {
	case realm.Scheme != "https" && (realm.Scheme != "http" || r.registry.Scheme != "http"):
		return r.refuse(realm.String(), "it is not spoken to over https")
	case realm.Opaque != "" || host == "" || realm.User != nil || realm.Fragment != "":
		return r.refuse(realm.String(), "its url is not just a host and a path")
	case realm.Port() == "" && strings.HasSuffix(realm.Host, ":") || checkHost(strings.ToLower(realm.Host)) != nil:
		return r.refuse(realm.String(), "its host is malformed")
	case notAddress == nil && unusual(address):
		return r.refuse(realm.String(), "its address is link-local, multicast or unspecified")
	case r.trusted(host, strings.ToLower(realm.Host)):
		return nil
	}
	return r.refuse(realm.String(), "it belongs to another domain than the registry: "+
		"an operator has to allow its host")
}

func unusual(address netip.Addr) bool {
	address = address.Unmap()
	return address.IsLinkLocalUnicast() || address.IsMulticast() || address.IsUnspecified()
}

func (r realmRule) trusted(host, hostport string) bool {
	registry := strings.ToLower(r.registry.Hostname())
	if host == registry || slices.ContainsFunc(r.hosts, func(allowed string) bool {
		return strings.EqualFold(allowed, host) || strings.EqualFold(allowed, hostport)
	}) {
		return true
	}
	mine, ok := registrable(registry)
	if !ok {
		return false
	}
	theirs, ok := registrable(host)
	return ok && mine == theirs
}

// registrable is the domain that one owner holds, by the list of public suffixes. Addresses, single labels and names
// under a suffix that the list does not know have no such owner: everybody in a cluster stands under cluster.local.
func registrable(host string) (domain string, ok bool) {
	if _, err := netip.ParseAddr(host); err == nil {
		return "", false
	}
	if suffix, managed := publicsuffix.PublicSuffix(host); !managed && !strings.Contains(suffix, ".") {
		return "", false
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(host)
	return domain, err == nil
}

func (r realmRule) refuse(realm, because string) error {
	return ownError{fmt.Errorf("%w: registry %s asks for a token from %s, to which nothing is sent: %s",
		ErrRealm, r.registry.Host, transport.PrintableQuoted(credential.CleanURL(realm)), because)}
}
