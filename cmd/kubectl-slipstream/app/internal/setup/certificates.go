// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	// auditUser is the common name that the server accepts audit events from, by default.
	auditUser = "kube-apiserver-audit"
	// authorityName is the common name of the authority that signs the certificate of that user.
	authorityName = "slipstream-audit-ca"
	// skew is the time by which certificates are backdated, for clocks that differ.
	skew = 5 * time.Minute
)

// pair is a certificate and its private key, both PEM.
type pair struct{ certificate, key []byte }

// authority signs client certificates.
type authority struct {
	pair
	parsed *x509.Certificate
	signer crypto.Signer
}

// newAuthority creates a self-signed authority that is valid for ten years.
func newAuthority(now time.Time) (*authority, error) {
	signer, key, err := newKey()
	if err != nil {
		return nil, err
	}
	created, err := cert.NewSelfSignedCACert(cert.Config{CommonName: authorityName, NotBefore: now.Add(-skew)}, signer)
	if err != nil {
		return nil, fmt.Errorf("create the authority: %w", err)
	}
	encoded, err := cert.EncodeCertificates(created)
	if err != nil {
		return nil, fmt.Errorf("encode the authority: %w", err)
	}
	return &authority{pair{encoded, key}, created, signer}, nil
}

// parseAuthority returns an authority that was created before.
func parseAuthority(of pair) (*authority, error) {
	certificates, err := cert.ParseCertsPEM(of.certificate)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the authority: %w", err)
	}
	key, err := keyutil.ParsePrivateKeyPEM(of.key)
	if err != nil {
		return nil, fmt.Errorf("read the key of the authority: %w", err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("read the key of the authority: a %T cannot sign", key)
	}
	public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(certificates[0].PublicKey) || !certificates[0].IsCA {
		return nil, errors.New("the certificate is not that of an authority with this key")
	}
	return &authority{of, certificates[0], signer}, nil
}

// client signs a client certificate for a user. It is valid no longer than the authority.
func (a *authority) client(user string, now time.Time, lifetime time.Duration) (pair, error) {
	signer, key, err := newKey()
	if err != nil {
		return pair{}, err
	}
	const serialBits = 127
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return pair{}, fmt.Errorf("choose a serial number: %w", err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: user}, SerialNumber: serial,
		NotBefore: now.Add(-skew), NotAfter: now.Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if a.parsed.NotAfter.Before(template.NotAfter) {
		template.NotAfter = a.parsed.NotAfter
	}
	if !template.NotAfter.After(now) {
		return pair{}, fmt.Errorf("the authority expired on %s: create a new one, with --force", a.parsed.NotAfter.UTC().Format(time.DateOnly))
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.parsed, signer.Public(), a.signer)
	if err != nil {
		return pair{}, fmt.Errorf("sign the certificate of %s: %w", user, err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		return pair{}, fmt.Errorf("read the certificate of %s: %w", user, err)
	}
	encoded, err := cert.EncodeCertificates(signed)
	return pair{encoded, key}, err
}

// newKey creates a private key, and returns it encoded as well.
func newKey() (crypto.Signer, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("create a key: %w", err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encode a key: %w", err)
	}
	return key, encoded, nil
}
