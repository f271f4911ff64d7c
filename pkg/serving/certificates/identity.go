// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// identity is that by which clients know the server. It does not change.
type identity struct {
	// certificate and key are PEM. Behind the certificate are those between it and its authority.
	certificate, key []byte
	chain            []*x509.Certificate
	private          crypto.PrivateKey
	// authorities are those that clients are to trust.
	authorities []*x509.Certificate
	// signer is the authority of the server's own that has signed it; nil if somebody else has.
	signer *authority
}

// newIdentity takes a certificate and the key that must belong to it.
func newIdentity(certificate, key []byte, authorities []*x509.Certificate) (*identity, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	chain, err := x509.ParseCertificates(bytes.Join(pair.Certificate, nil))
	if err != nil {
		return nil, err
	}
	return &identity{
		certificate: certificate, key: key, chain: chain, private: pair.PrivateKey, authorities: authorities,
	}, nil
}

func (i *identity) leaf() *x509.Certificate { return i.chain[0] }

// verify returns why a client that trusts authorities, and wants the server of that name, would refuse it.
func (i *identity) verify(authorities []*x509.Certificate, name string, at time.Time) error {
	_, err := i.path(authorities, name, at)
	return err
}

// path is that from the certificate to one of the authorities.
func (i *identity) path(authorities []*x509.Certificate, name string, at time.Time) ([]*x509.Certificate, error) {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, each := range authorities {
		roots.AddCert(each)
	}
	for _, each := range i.chain[1:] {
		between.AddCert(each)
	}
	paths, err := i.leaf().Verify(x509.VerifyOptions{
		DNSName: name, Roots: roots, Intermediates: between, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return nil, fmt.Errorf("verifying the certificate %s: %w", describe(i.leaf()), err)
	}
	return paths[0], nil
}

// sameTrust tells whether clients that trust one of the two trust the other.
func (i *identity) sameTrust(other *identity) bool {
	return sameCertificates(i.authorities, other.authorities)
}

// equal tells whether it is the same certificate, for the same authorities.
func (i *identity) equal(other *identity) bool {
	return bytes.Equal(i.certificate, other.certificate) && bytes.Equal(i.key, other.key) && i.sameTrust(other)
}

// describe names a certificate to people.
func describe(certificate *x509.Certificate) string {
	return fmt.Sprintf("%q (serial number %x, until %s)",
		certificate.Subject.CommonName, certificate.SerialNumber, certificate.NotAfter.UTC().Format(time.RFC3339))
}

// untimely tells whether only the time is wrong with a certificate.
func untimely(err error) bool {
	var invalid x509.CertificateInvalidError
	return errors.As(err, &invalid) && invalid.Reason == x509.Expired
}

// timely is the time next to now at which a certificate is valid.
func timely(certificate *x509.Certificate, now time.Time) time.Time {
	switch {
	case now.Before(certificate.NotBefore):
		return certificate.NotBefore
	case now.After(certificate.NotAfter):
		return certificate.NotAfter
	}
	return now
}
