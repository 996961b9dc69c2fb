package upstream

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync/atomic"
	"time"
)

// CA is a certificate authority that lives in memory. Its certificates are valid from 2020 to 2120, so that no
// test depends on the clock.
type CA struct {
	cert   *x509.Certificate
	key    crypto.Signer
	pem    []byte
	serial atomic.Int64
}

// Identity is a certificate with its key.
type Identity struct {
	CertPEM, KeyPEM []byte
	TLS             tls.Certificate
}

// NewCA generates an authority with a key of its own.
func NewCA(name string) (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create authority %q: %w", name, err)
	}
	from, until := validity()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("create authority %q: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("create authority %q: %w", name, err)
	}
	ca := &CA{cert: cert, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	ca.serial.Store(1)
	return ca, nil
}

// PEM is the authority's certificate.
func (ca *CA) PEM() []byte { return ca.pem }

// Pool holds the authority's certificate alone.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return pool
}

// Server issues a server's certificate for host names and addresses.
func (ca *CA) Server(hosts ...string) (Identity, error) {
	from, until := validity()
	return ca.issue(hosts, "server", x509.ExtKeyUsageServerAuth, from, until)
}

// ExpiredServer issues a server's certificate that ended in 2021.
func (ca *CA) ExpiredServer(hosts ...string) (Identity, error) {
	from, _ := validity()
	return ca.issue(hosts, "server", x509.ExtKeyUsageServerAuth, from, from.AddDate(1, 0, 0))
}

// Client issues a client's certificate.
func (ca *CA) Client(name string) (Identity, error) {
	from, until := validity()
	return ca.issue(nil, name, x509.ExtKeyUsageClientAuth, from, until)
}

func (ca *CA) issue(hosts []string, name string, usage x509.ExtKeyUsage, from, until time.Time) (Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Identity{}, fmt.Errorf("issue certificate %q: %w", name, err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(ca.serial.Add(1)), Subject: pkix.Name{CommonName: name},
		NotBefore: from, NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return Identity{}, fmt.Errorf("issue certificate %q: %w", name, err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Identity{}, fmt.Errorf("issue certificate %q: %w", name, err)
	}
	id := Identity{
		CertPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		KeyPEM:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}
	id.TLS, err = tls.X509KeyPair(id.CertPEM, id.KeyPEM)
	if err != nil {
		return Identity{}, fmt.Errorf("issue certificate %q: %w", name, err)
	}
	return id, nil
}

func validity() (from, until time.Time) {
	from = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	return from, from.AddDate(100, 0, 0)
}
