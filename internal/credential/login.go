package credential

// Login is what a server of files may ask for. The zero value is anonymous.
type Login struct {
	Username string
	Password Secret
	TLS      TLS
}

// Identity names everything in l by a hash: what was fetched under one identity may be shown to an equal one.
func (l Login) Identity() string {
	e := newEncoder("login")
	e.text(l.Username)
	e.text(l.Password.Reveal())
	l.TLS.encode(e)
	return e.sum()
}

// Secrets lists every secret of l, for Redact.
func (l Login) Secrets() []Secret { return append(basic(l.Username, l.Password), l.TLS.Key) }
