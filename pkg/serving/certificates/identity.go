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

// identity is a certificate with its key. It is immutable.
type identity struct {
	// certificate and key are PEM. The certificate is followed by its intermediates.
	certificate, key []byte
	chain            []*x509.Certificate
	private          crypto.PrivateKey
	// authorities are those that clients need to trust.
	authorities []*x509.Certificate
	// signer is the server's own authority that signed it, nil for other issuers.
	signer *authority
}

// newIdentity parses a certificate and its key, which must match.
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

// verify returns why a client that trusts authorities would reject the certificate for name.
func (i *identity) verify(authorities []*x509.Certificate, name string, at time.Time) error {
	_, err := i.path(authorities, name, at)
	return err
}

// path returns the chain from the certificate to one of the authorities.
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

// sameTrust reports whether clients that trust one of the two trust the other.
func (i *identity) sameTrust(other *identity) bool {
	return sameCertificates(i.authorities, other.authorities)
}

// equal reports whether both have the same certificate and authorities.
func (i *identity) equal(other *identity) bool {
	return bytes.Equal(i.certificate, other.certificate) && bytes.Equal(i.key, other.key) && i.sameTrust(other)
}

// describe describes a certificate for logs and errors.
func describe(certificate *x509.Certificate) string {
	return fmt.Sprintf("%q (serial number %x, until %s)",
		certificate.Subject.CommonName, certificate.SerialNumber, certificate.NotAfter.UTC().Format(time.RFC3339))
}

// isOnlyExpired reports whether an error is only about a certificate's validity period.
func isOnlyExpired(err error) bool {
	var invalid x509.CertificateInvalidError
	return errors.As(err, &invalid) && invalid.Reason == x509.Expired
}

// validTime returns the time closest to now at which a certificate is valid.
func validTime(certificate *x509.Certificate, now time.Time) time.Time {
	switch {
	case now.Before(certificate.NotBefore):
		return certificate.NotBefore
	case now.After(certificate.NotAfter):
		return certificate.NotAfter
	}
	return now
}
