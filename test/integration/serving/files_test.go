// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/pki"
)

// volume is a folder with a Secret as kubelet mounts it: all files change at once, by one symbolic link.
type volume struct {
	folder string
}

// write replaces the content of the volume with a certificate of an authority.
func (v volume) write(t *testing.T, authority *pki.Authority) {
	t.Helper()
	pair, err := authority.Server("server", serverName, "localhost", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	version, err := os.MkdirTemp(v.folder, "..version")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"tls.crt": pair.Certificate, "tls.key": pair.Key, "ca.crt": authority.Certificate} {
		if err := os.WriteFile(filepath.Join(version, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(v.folder, name)); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
	next := filepath.Join(v.folder, "..next")
	if err := os.Symlink(filepath.Base(version), next); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(v.folder, "..data")); err != nil {
		t.Fatal(err)
	}
}

func newAuthority(t *testing.T, name string) *pki.Authority {
	t.Helper()
	authority, err := pki.NewAuthority(name)
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

// TestFiles replaces the certificate files as cert-manager and kubelet do, and then the client certificate of kube-apiserver's front
// proxy.
func TestFiles(t *testing.T) {
	t.Parallel()
	files := volume{t.TempDir()}
	first := newAuthority(t, "first")
	files.write(t, first)
	// At this level kube-apiserver logs reloads of certificates.
	s := newTestCluster(t, devcluster.Options{APIServerArgs: []string{"-v=2"}},
		"--tls-cert-file="+filepath.Join(files.folder, "tls.crt"), "--tls-private-key-file="+filepath.Join(files.folder, "tls.key"),
		"--serving-authority-file="+filepath.Join(files.folder, "ca.crt"))
	s.waitForAuthority(t, "first")
	s.testAggregator(t)
	s.testNewConnections(t)

	before := s.certificate(t)
	files.write(t, first)
	s.eventually(t, "the renewed certificate", func(ctx context.Context) error {
		found, err := s.handshake(ctx)
		if err == nil && found.Equal(before) {
			err = errors.New("certificate is unchanged")
		}
		return err
	})
	s.expectUninterrupted(t, "files renewed")

	files.write(t, newAuthority(t, "second"))
	s.waitForAuthority(t, "second")
	s.expectUninterrupted(t, "files of another authority")

	former, next := s.rotateFrontProxy(t)
	s.expectUninterrupted(t, "front proxy of another authority")
	for code, proof := range map[int]pki.Pair{http.StatusForbidden: former, http.StatusOK: next} {
		s.eventually(t, "the former front proxy to be refused, and the next one accepted", func(ctx context.Context) error {
			got, err := s.requestAsFrontProxy(ctx, proof)
			if err == nil && got != code {
				err = fmt.Errorf("response code = %d, want %d", got, code)
			}
			return err
		})
	}
}

// requestAsFrontProxy sends a request to the server directly, with headers that only a front proxy may set, and returns the status.
func (s *testCluster) requestAsFrontProxy(ctx context.Context, proof pki.Pair) (int, error) {
	certificate, err := tls.X509KeyPair(proof.Certificate, proof.Key)
	if err != nil {
		return 0, err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, Certificates: []tls.Certificate{certificate},
	}}
	defer transport.CloseIdleConnections()
	url := s.Env(devcluster.EnvServerURL) + "/apis/configbutler.ai/v1alpha1/gitrepoconfigs"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("X-Remote-User", "admin")
	request.Header.Set("X-Remote-Group", "system:masters")
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, err
	}
	_ = response.Body.Close() // only the status matters
	return response.StatusCode, nil
}

// rotateFrontProxy replaces the client certificate of the front proxy and its authority. kube-apiserver reloads the files. The
// former and the new client certificate are returned.
func (s *testCluster) rotateFrontProxy(t *testing.T) (former, client pki.Pair) {
	t.Helper()
	const authorityName, clientName, user = "front-proxy-ca", "front-proxy-client", "front-proxy-client"
	folder := filepath.Join(filepath.Dir(filepath.Dir(s.Env(devcluster.EnvKubeconfig))), "pki")
	old, err := pki.Read(folder, authorityName)
	if err != nil {
		t.Fatal(err)
	}
	next := newAuthority(t, "next front proxy")
	s.trustFrontProxies(t, folder, old.Certificate, next.Certificate)
	read := s.proxyCertificatesRead(t)
	if former, err = pki.Read(folder, clientName); err != nil {
		t.Fatal(err)
	}
	if client, err = next.Client(user); err != nil {
		t.Fatal(err)
	}
	if err := client.Write(folder, clientName); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, "kube-apiserver to reload its certificate", func(context.Context) error {
		if s.proxyCertificatesRead(t) == read {
			return errors.New("no reload is logged")
		}
		return nil
	})
	s.expectUninterrupted(t, "front proxy of two authorities")
	s.trustFrontProxies(t, folder, next.Certificate)
	return former, client
}

// proxyCertificatesRead returns how many times kube-apiserver has loaded the certificate of the front proxy.
func (s *testCluster) proxyCertificatesRead(t *testing.T) int {
	t.Helper()
	log, err := s.apiServerLog()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(log, `"Loaded a new cert/key pair" name="aggregator-proxy-cert::`)
}

// trustFrontProxies makes kube-apiserver publish these authorities of front proxies, and waits until it does. kube-apiserver adds
// new authorities and never removes old ones, so the ConfigMap is deleted.
func (s *testCluster) trustFrontProxies(t *testing.T, folder string, authorities ...[]byte) {
	t.Helper()
	const name = "extension-apiserver-authentication"
	if err := os.WriteFile(filepath.Join(folder, "front-proxy-ca.crt"), slices.Concat(authorities...), 0o600); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, "the authorities of front proxies", func(ctx context.Context) error {
		published, err := s.admin.Run(ctx, "get", "configmap", name, "-n", "kube-system",
			"-o", `go-template={{index .data "requestheader-client-ca-file"}}`)
		if err != nil {
			return err
		}
		count := strings.Count(published, "BEGIN CERTIFICATE")
		if count > len(authorities) {
			_, err := s.admin.Run(ctx, "delete", "configmap", name, "-n", "kube-system")
			return errors.Join(errors.New("former authorities are still published"), err)
		}
		if count < len(authorities) {
			return errors.New("not all authorities are published")
		}
		return nil
	})
}
