// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster/pki"
)

// leaf returns the certificate of a pair, and checks that the key matches.
func leaf(t *testing.T, pair pki.Pair, err error) *x509.Certificate {
	t.Helper()
	if err != nil {
		t.Fatalf("sign: %v", err)
	}
	parsed, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	return parsed.Leaf
}

func newAuthority(t *testing.T) *pki.Authority {
	t.Helper()
	authority, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatalf("make an authority: %v", err)
	}
	return authority
}

func verify(authority *pki.Authority, certificate *x509.Certificate, host string, usage x509.ExtKeyUsage) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.Certificate)
	_, err := certificate.Verify(x509.VerifyOptions{
		Roots: roots, DNSName: host, KeyUsages: []x509.ExtKeyUsage{usage},
	})
	return err
}

func TestServerHosts(t *testing.T) {
	authority := newAuthority(t)
	pair, err := authority.Server("server", "localhost", "slipstream.system.svc", "127.0.0.1")
	certificate := leaf(t, pair, err)
	for host, want := range map[string]bool{
		"localhost": true, "slipstream.system.svc": true, "127.0.0.1": true,
		"other": false, "127.0.0.2": false,
	} {
		if err := verify(authority, certificate, host, x509.ExtKeyUsageServerAuth); (err == nil) != want {
			t.Errorf("host %s: want valid %v, got error %v", host, want, err)
		}
	}
	if err := verify(authority, certificate, "localhost", x509.ExtKeyUsageClientAuth); err == nil {
		t.Error("server certificate is valid for a client")
	}
}

func TestClientUserAndGroups(t *testing.T) {
	authority := newAuthority(t)
	pair, err := authority.Client("jane", "dev", "ops")
	certificate := leaf(t, pair, err)
	if err := verify(authority, certificate, "", x509.ExtKeyUsageClientAuth); err != nil {
		t.Errorf("verify: %v", err)
	}
	if certificate.Subject.CommonName != "jane" {
		t.Errorf("got user %s, want jane", certificate.Subject.CommonName)
	}
	if groups := certificate.Subject.Organization; !slices.Equal(groups, []string{"dev", "ops"}) {
		t.Errorf("got groups %v, want dev and ops", groups)
	}
	if err := verify(newAuthority(t), certificate, "", x509.ExtKeyUsageClientAuth); err == nil {
		t.Error("certificate is valid for another authority")
	}
}

func TestAuthorityRoundTrip(t *testing.T) {
	folder := t.TempDir()
	authority := newAuthority(t)
	if err := authority.Write(folder, "ca"); err != nil {
		t.Fatalf("write: %v", err)
	}
	pair, err := pki.Read(folder, "ca")
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	read, err := pki.ParseAuthority(pair)
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	client, err := read.Client("jane")
	if err := verify(authority, leaf(t, client, err), "", x509.ExtKeyUsageClientAuth); err != nil {
		t.Errorf("certificate of the parsed authority is invalid for the original: %v", err)
	}
}

func TestParseInvalidAuthority(t *testing.T) {
	authority := newAuthority(t)
	for name, pair := range map[string]pki.Pair{
		"nothing":          {},
		"no key":           {Certificate: authority.Certificate},
		"KeyAsCertificate": {Certificate: authority.Key, Key: authority.Key},
		"CertificateAsKey": {Certificate: authority.Certificate, Key: authority.Certificate},
	} {
		if _, err := pki.ParseAuthority(pair); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
