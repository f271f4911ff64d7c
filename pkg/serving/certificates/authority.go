// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"strings"
	"time"

	"k8s.io/client-go/util/keyutil"
)

const (
	// skew is how much certificates are backdated for clock skew, as by kube-controller-manager.
	skew = 5 * time.Minute
	// ownAuthority is the prefix of the names of authorities that the server created.
	ownAuthority = "slipstream-serving-authority@"
	// serialBits is the size of random serial numbers.
	serialBits = 120
)

// authority signs the server's certificates. It is immutable.
type authority struct {
	// identity is the authority's own. Its certificate is followed by those of superior authorities, if there are any.
	identity
}

// loopback returns the addresses that every certificate includes, because the server connects to itself.
func loopback() []net.IP { return []net.IP{net.IPv4(127, 0, 0, 1).To4(), net.IPv6loopback} }

// newAuthority creates an authority with a new key, constrained to names and loopback: a stolen key cannot impersonate
// other servers where the authority is trusted.
func newAuthority(names []string, now time.Time, lifetime time.Duration) (*authority, error) {
	template := newTemplate(fmt.Sprintf("%s%d", ownAuthority, now.Unix()), now, lifetime)
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	template.PermittedDNSDomainsCritical, template.PermittedDNSDomains = true, names
	for _, each := range loopback() {
		bits := 8 * len(each)
		template.PermittedIPRanges = append(template.PermittedIPRanges, &net.IPNet{IP: each, Mask: net.CIDRMask(bits, bits)})
	}
	certificate, key, err := issue(template, nil)
	if err != nil {
		return nil, fmt.Errorf("creating an authority: %w", err)
	}
	return parseAuthority(certificate, key, nil)
}

// parseAuthority parses a certificate that can sign others, its key, and further authorities that clients trust.
func parseAuthority(certificate, key, bundle []byte) (*authority, error) {
	own, err := newIdentity(certificate, key, nil)
	if err != nil {
		return nil, err
	}
	a := &authority{identity: *own}
	if leaf := a.leaf(); !leaf.IsCA || leaf.KeyUsage != 0 && leaf.KeyUsage&x509.KeyUsageCertSign == 0 {
		return nil, fmt.Errorf("the certificate %s may not sign others: it must be that of an authority", describe(leaf))
	}
	a.authorities = []*x509.Certificate{a.leaf()}
	if !a.ours() {
		a.authorities = withAuthorities(parseBundle(bundle), a.authorities, time.Time{})
	}
	return a, nil
}

// ours reports whether a server created the authority, not a user.
func (a *authority) ours() bool {
	subject := a.leaf().Subject.CommonName
	return strings.HasPrefix(subject, ownAuthority) && bytes.Equal(a.leaf().RawIssuer, a.leaf().RawSubject)
}

// valid reports whether clients accept what it signs now.
func (a *authority) valid(now time.Time) bool {
	return !now.Before(a.leaf().NotBefore) && !now.After(a.leaf().NotAfter)
}

// permits returns why clients that trust the authority would reject its certificates for names. An authority can be
// constrained to other names: previous ones, or those that a user chose.
func (a *authority) permits(names []string, now time.Time) error {
	signed, err := a.sign(names, now, skew)
	if err != nil {
		return err
	}
	return signed.verify([]*x509.Certificate{a.leaf()}, names[0], now)
}

// sign issues a certificate for names, of which the first is the common name. It is valid no longer than the authority.
func (a *authority) sign(names []string, now time.Time, lifetime time.Duration) (*identity, error) {
	template := newTemplate(names[0], now, lifetime)
	if end := a.leaf().NotAfter; end.Before(template.NotAfter) {
		template.NotAfter = end
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = names
	template.IPAddresses = loopback()
	certificate, key, err := issue(template, a)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate: %w", err)
	}
	if !a.ours() {
		// Some trust what is above an authority of somebody's own.
		certificate = append(certificate, a.certificate...)
	}
	signed, err := newIdentity(certificate, key, a.authorities)
	if err != nil {
		return nil, err
	}
	signed.signer = a
	return signed, nil
}

// due reports whether a certificate that a server created should be replaced: two thirds of its lifetime are over, or
// it is not valid yet because the clock was wrong.
func due(certificate *x509.Certificate, now time.Time) bool {
	third := certificate.NotAfter.Sub(certificate.NotBefore.Add(skew)) / 3
	return now.Before(certificate.NotBefore) || !now.Before(certificate.NotAfter.Add(-third))
}

// newTemplate returns the common part of all certificates, without a serial number.
func newTemplate(name string, now time.Time, lifetime time.Duration) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-skew), NotAfter: now.Add(lifetime),
	}
}

// issue creates a key with a certificate, signed by an authority or self-signed.
func issue(template *x509.Certificate, by *authority) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits)); err != nil {
		return nil, nil, err
	}
	parent, signer := template, crypto.PrivateKey(private)
	if by != nil {
		parent, signer = by.leaf(), by.private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, private.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	return encodeBundle([]*x509.Certificate{signed}), key, err
}
