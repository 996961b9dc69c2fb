package credential

// Proxy is the way out to an upstream. The zero value leaves the choice to the environment.
type Proxy struct {
	// URL is scheme://host[:port] with scheme http, https or socks5, and without user and password. Empty means what
	// the environment says.
	URL string
	// Username and Password are for the proxy alone.
	Username string
	Password Secret
}

// Identity names everything in p by a hash; connections may be shared by those with equal identities.
func (p Proxy) Identity() string {
	e := newEncoder("proxy")
	p.encode(e)
	return e.sum()
}

// Secrets lists every secret of p, for Redact.
func (p Proxy) Secrets() []Secret { return basic(p.Username, p.Password) }

func (p Proxy) encode(e *encoder) {
	e.text(p.URL)
	e.text(p.Username)
	e.text(p.Password.Reveal())
}

// Registry is what an OCI registry may ask for, and the way to it. The zero value is anonymous.
type Registry struct {
	Username string
	Password Secret
	// IdentityToken is exchanged for access tokens at the registry's token server; it takes the place of Password there.
	IdentityToken Secret
	// RegistryToken is sent to the registry itself as a bearer token.
	RegistryToken Secret
	TLS           TLS
	Proxy         Proxy
}

// Identity names everything in r by a hash: what was fetched under one identity may be shown to an equal one.
func (r Registry) Identity() string {
	e := newEncoder("registry")
	e.text(r.Username)
	e.text(r.Password.Reveal())
	e.text(r.IdentityToken.Reveal())
	e.text(r.RegistryToken.Reveal())
	r.TLS.encode(e)
	r.Proxy.encode(e)
	return e.sum()
}

// Secrets lists every secret of r, for Redact.
func (r Registry) Secrets() []Secret {
	secrets := append(basic(r.Username, r.Password), r.IdentityToken, r.RegistryToken, r.TLS.Key)
	return append(secrets, r.Proxy.Secrets()...)
}
