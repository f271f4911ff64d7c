// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/configbutler/slipstream/pkg/serving/certificates"
)

// stolen is the authority in the Secret, as a user can read it.
func (c *cluster) stolen(t *testing.T) *issuer {
	t.Helper()
	pair, err := tls.X509KeyPair([]byte(c.secret(t, "tls.crt")), []byte(c.secret(t, "tls.key")))
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{certificate: pair.Leaf, private: pair.PrivateKey}
}

// TestAuthorityIsForTheServerOnly checks that a client that trusts the server's authority refuses its certificates for other names.
func TestAuthorityIsForTheServerOnly(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	r := c.start(t, nil)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(c.bundles(t)[0]))
	for _, name := range append(certificates.Names(service), "127.0.0.1", "::1") {
		if _, err := r.leaf(t).Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: c.clock.Now()}); err != nil {
			t.Errorf("the server is refused as %s: %v", name, err)
		}
	}
	by := c.stolen(t)
	for _, name := range []string{"kubernetes.default.svc", "other.slipstream-system.svc", "example.com", "10.0.0.1"} {
		forged := by.server(t, name)
		_, err := forged.certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: c.clock.Now()})
		if err == nil || !strings.Contains(err.Error(), "not permitted") {
			t.Errorf("a forged certificate for %s: %v", name, err)
		}
	}
}

// An authority of the server's own stays while it permits the names that the server has, also one that permits all. One for
// other names is replaced, unless a person has chosen it.
func TestAuthorityForOtherNames(t *testing.T) {
	t.Parallel()
	const own = "slipstream-serving-authority@1"
	other := certificates.Names(service)[1:]
	tests := map[string]struct {
		subject string
		permits []string
		// kept is the authority, used says that it signs.
		kept, used bool
	}{
		"for all names":                {subject: own, kept: true, used: true},
		"for the server's names":       {subject: own, permits: certificates.Names(service), kept: true, used: true},
		"for other names":              {subject: own, permits: other},
		"a user's own, for all names":  {subject: "a user's own", kept: true, used: true},
		"a user's own, for some names": {subject: "a user's own", permits: other, kept: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			by := sign(t, &x509.Certificate{
				Subject: pkix.Name{CommonName: test.subject}, NotBefore: c.clock.Now().Add(-time.Hour), NotAfter: c.clock.Now().Add(authorityLifetime),
				IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
				PermittedDNSDomains: test.permits, PermittedDNSDomainsCritical: len(test.permits) > 0,
			}, nil)
			c.putSecret(t, by.certificates, by.key)
			logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
			r := c.newReplica(t, nil)
			if err := r.controller.RunOnce(klog.NewContext(t.Context(), logger)); err != nil {
				t.Fatal(err)
			}
			said := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
			if got := !strings.Contains(said, "may not sign for all names of this server"); got != test.used {
				t.Errorf("the authority is used from the start: %v, want %v\n%s", got, test.used, said)
			}
			c.everyFewSeconds(t, time.Minute, r)
			if got := c.secret(t, "tls.crt") == string(by.certificates); got != test.kept {
				t.Errorf("the authority is kept: %v, want %v", got, test.kept)
			}
			if got := r.trusted(t, string(by.certificates), c.clock.Now()) == nil; got != test.used {
				t.Errorf("the authority signs: %v, want %v", got, test.used)
			}
			for place, bundle := range c.bundles(t) {
				if err := r.trusted(t, bundle, c.clock.Now()); err != nil {
					t.Errorf("place %d: %v", place, err)
				}
			}
			if !test.kept && r.trusted(t, c.secret(t, "tls.crt"), c.clock.Now()) != nil {
				t.Error("the authority that has taken its place does not sign")
			}
		})
	}
}
