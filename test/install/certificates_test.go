// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster/pki"
	"github.com/configbutler/slipstream/test/fidelity/crds"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// define installs the original CustomResourceDefinitions of other projects, so that invalid objects are rejected.
func (s *testCluster) define(t *testing.T, definitions ...string) {
	t.Helper()
	files, err := crds.Definitions(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(file string) bool {
		return !slices.Contains(definitions, strings.TrimSuffix(filepath.Base(file), ".yaml"))
	})
	if len(files) != len(definitions) {
		t.Fatalf("definitions = %v, want %v", files, definitions)
	}
	s.Run(t, "apply", "--server-side", "-f", strings.Join(files, ","))
	s.Run(t, "wait", "--for=condition=Established", "-f", strings.Join(files, ","), "--timeout=10m")
}

// testCertificates changes the source of the server's certificate in a running release with direct admission. The aggregator and the
// webhook must trust each certificate.
func testCertificates(t *testing.T, s *testCluster) {
	defer s.remove(t)
	const held = holdings("certified")
	s.Apply(t, restrictedNamespace+"---"+held.namespaces())
	s.define(t, "cert-manager.io_certificates", "cert-manager.io_issuers")
	direct := s.directly(t)
	s.release(t, held.values(direct.value())...)
	s.do(t, "", s.helm, "test", "slipstream", "-n", namespace)
	m := s.fill(t, held)
	jane := m.person(t, "jane")
	direct.waitForWebhook(t)
	jane.waitForAuthor(t)
	before := s.settled(t)
	for _, change := range []struct {
		to      string
		value   string
		prepare func() (wait func())
	}{
		{"cert-manager", `tls={"mode": "cert-manager"}`, func() func() { return s.certManager(t) }},
		{"secret", `tls={"mode": "secret", "secretName": "own"}`, func() func() { s.writeCertificate(t, "own"); return func() {} }},
		{"self", `tls={"mode": "self"}`, func() func() { return func() {} }},
	} {
		requests := s.request(t, m.namespace)
		wait := change.prepare()
		s.release(t, held.values(direct.value(), change.value)...)
		s.trusted(t)
		wait()
		requests.stop(t, "change to "+change.to)
		for _, failure := range requests.failures {
			if strings.Contains(failure.Error(), "x509") {
				t.Errorf("API server did not trust the server: %v", failure)
			}
		}
		s.unchanged(t, before)
		m.expectWorking(t)
		direct.waitForWebhook(t)
		jane.waitForAuthor(t)
		before = s.settled(t)
	}
}

// certManager creates the Secret of the chart's Certificate, as cert-manager does.
func (s *testCluster) certManager(t *testing.T) (wait func()) {
	made := make(chan struct{})
	go func() {
		defer close(made)
		mirrortest.Eventually(t, "the Certificate exists", func(ctx context.Context) error {
			name, err := s.Administrator.Run(ctx, "get", "certificate/slipstream", "-n", namespace, "-o", "jsonpath={.spec.secretName}")
			if err == nil && name != "slipstream-tls" {
				err = fmt.Errorf("secretName = %q", name)
			}
			return err
		})
		s.writeCertificate(t, "slipstream-tls")
	}()
	return func() { <-made }
}

// writeCertificate creates a Secret with a certificate for the server, of a new authority.
func (s *testCluster) writeCertificate(t *testing.T, name string) {
	t.Helper()
	authority, err := pki.NewAuthority(name)
	if err != nil {
		t.Error(err)
		return
	}
	pair, err := authority.Server("slipstream", "slipstream."+namespace+".svc")
	if err != nil {
		t.Error(err)
		return
	}
	encode := base64.StdEncoding.EncodeToString
	manifest := fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: %s, namespace: %s}
type: kubernetes.io/tls
data: {ca.crt: %s, tls.crt: %s, tls.key: %s}
`, name, namespace, encode(authority.Certificate), encode(pair.Certificate), encode(pair.Key))
	if _, err := s.Administrator.Feed(t.Context(), manifest, "apply", "-f", "-"); err != nil {
		t.Error(err)
	}
}

// trusted waits until the bundle of the APIService verifies the server's certificate.
func (s *testCluster) trusted(t *testing.T) {
	t.Helper()
	mirrortest.Eventually(t, "the bundle of the APIService verifies the server's certificate", func(ctx context.Context) error {
		return vouches(ctx, s.caBundle(t), s.address(t))
	})
}

// address returns the address of the server's Service.
func (s *testCluster) address(t *testing.T) string {
	t.Helper()
	return net.JoinHostPort(s.Run(t, "get", "service/slipstream", "-n", namespace, "-o", "jsonpath={.spec.clusterIP}"), "443")
}

// vouches connects to the server and verifies its certificate as kube-apiserver does.
func vouches(ctx context.Context, bundle, address string) error {
	content, err := base64.StdEncoding.DecodeString(bundle)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(content) {
		return errors.New("no authority in the bundle")
	}
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: "slipstream." + namespace + ".svc"}}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return connection.Close()
}
