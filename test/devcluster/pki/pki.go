// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki creates the certificate authorities of a development cluster,
// and the certificates of servers and clients that they sign.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	// validity exceeds the lifetime of every development cluster.
	validity = 365 * 24 * time.Hour
	// skew is the time by which certificates are backdated, for clocks that differ.
	skew = time.Minute
)

// Pair is a certificate and its private key, both PEM.
type Pair struct {
	Certificate []byte
	Key         []byte
}

// Authority signs certificates. It is safe for concurrent use.
type Authority struct {
	// Pair is the authority's own self-signed certificate.
	Pair

	certificate *x509.Certificate
	key         crypto.Signer
}

// NewAuthority creates an authority with a new key.
func NewAuthority(name string) (*Authority, error) {
	template := newTemplate(name)
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	pair, err := sign(template, nil)
	if err != nil {
		return nil, fmt.Errorf("failed to create authority %s: %w", name, err)
	}
	return ParseAuthority(pair)
}

// ParseAuthority returns the authority with the given certificate and key.
func ParseAuthority(pair Pair) (*Authority, error) {
	certificateBlock, _ := pem.Decode(pair.Certificate)
	keyBlock, _ := pem.Decode(pair.Key)
	if certificateBlock == nil || keyBlock == nil {
		return nil, errors.New("authority is not PEM")
	}
	certificate, err := x509.ParseCertificate(certificateBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("failed to read an authority's certificate: %w", err)
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("failed to read an authority's key: %w", err)
	}
	return &Authority{Pair: pair, certificate: certificate, key: key}, nil
}

// Client signs a client certificate for a Kubernetes user in
// groups.
func (a *Authority) Client(user string, groups ...string) (Pair, error) {
	template := newTemplate(user)
	template.Subject.Organization = groups
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	pair, err := sign(template, a)
	if err != nil {
		return Pair{}, fmt.Errorf("failed to sign the certificate of user %s: %w", user, err)
	}
	return pair, nil
}

// Server signs the certificate of a server with the given names and IP
// addresses.
func (a *Authority) Server(name string, hosts ...string) (Pair, error) {
	template := newTemplate(name)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if address := net.ParseIP(host); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	pair, err := sign(template, a)
	if err != nil {
		return Pair{}, fmt.Errorf("failed to sign the certificate of server %s: %w", name, err)
	}
	return pair, nil
}

// NewKey creates a private key, PEM, and its public half, PEM.
func NewKey() (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to create a key: %w", err)
	}
	private, err = encodeKey(key)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, fmt.Errorf("failed to encode a public key: %w", err)
	}
	return private, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// Write writes the pair to NAME.crt and NAME.key in a folder, readable by its owner
// only.
func (p Pair) Write(folder, name string) error {
	for suffix, content := range map[string][]byte{".crt": p.Certificate, ".key": p.Key} {
		if err := os.WriteFile(filepath.Join(folder, name+suffix), content, 0o600); err != nil {
			return fmt.Errorf("failed to write certificate %s: %w", name, err)
		}
	}
	return nil
}

// Read reads a pair that Write wrote.
func Read(folder, name string) (Pair, error) {
	certificate, err := os.ReadFile(filepath.Join(folder, name+".crt"))
	if err != nil {
		return Pair{}, fmt.Errorf("failed to read certificate %s: %w", name, err)
	}
	key, err := os.ReadFile(filepath.Join(folder, name+".key"))
	if err != nil {
		return Pair{}, fmt.Errorf("failed to read the key of certificate %s: %w", name, err)
	}
	return Pair{Certificate: certificate, Key: key}, nil
}

// newTemplate returns the common fields of all certificates, except a serial number.
func newTemplate(commonName string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: commonName},
		NotBefore: now.Add(-skew),
		NotAfter:  now.Add(validity),
	}
}

// sign creates a key and a certificate for it, signed by the authority, or by the key
// itself if by is nil.
func sign(template *x509.Certificate, by *Authority) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("failed to create a key: %w", err)
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return Pair{}, fmt.Errorf("failed to create a serial number: %w", err)
	}
	parent, signer := template, crypto.Signer(key)
	if by != nil {
		parent, signer = by.certificate, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return Pair{}, fmt.Errorf("failed to create a certificate: %w", err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return Pair{}, err
	}
	certificatePEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return Pair{Certificate: certificatePEM, Key: keyPEM}, nil
}

// encodeKey returns the key as PEM in a form that Kubernetes also accepts for keys of
// service accounts.
func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("failed to encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
