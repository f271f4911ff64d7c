// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/pki"
)

// volume is a folder with a Secret as kubelet shows it: all files change at once, by one link.
type volume struct {
	folder string
}

// write makes the volume show a certificate of an authority.
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

// TestFiles replaces the files with a certificate as cert-manager and kubelet do, and then by what kube-apiserver proves
// to the server that it is the front proxy.
func TestFiles(t *testing.T) {
	t.Parallel()
	files := volume{t.TempDir()}
	first := newAuthority(t, "first")
	files.write(t, first)
	// It logs then that it has read a certificate.
	s := newStage(t, devcluster.Options{APIServerArgs: []string{"-v=2"}},
		"--tls-cert-file="+filepath.Join(files.folder, "tls.crt"), "--tls-private-key-file="+filepath.Join(files.folder, "tls.key"),
		"--serving-authority-file="+filepath.Join(files.folder, "ca.crt"))
	s.becomesOf(t, "first")
	s.askAggregator(t)
	s.askAfresh(t)

	before := s.shown(t)
	files.write(t, first)
	s.eventually(t, "the renewed certificate", func(ctx context.Context) error {
		found, err := s.handshake(ctx)
		if err == nil && found.Equal(before) {
			err = errors.New("it is the same")
		}
		return err
	})
	s.undisturbed(t, "files renewed")

	files.write(t, newAuthority(t, "second"))
	s.becomesOf(t, "second")
	s.undisturbed(t, "files of another authority")

	former, next := s.rotateFrontProxy(t)
	s.undisturbed(t, "front proxy of another authority")
	if status := s.askAsFrontProxy(t, former); status != http.StatusForbidden {
		t.Errorf("the front proxy of before, who is anybody now, gets %d", status)
	}
	if status := s.askAsFrontProxy(t, next); status != http.StatusOK {
		t.Errorf("the front proxy gets %d", status)
	}
}

// askAsFrontProxy asks the server itself as somebody whom it should believe a front proxy only, and returns the status.
func (s *stage) askAsFrontProxy(t *testing.T, proof pki.Pair) int {
	t.Helper()
	certificate, err := tls.X509KeyPair(proof.Certificate, proof.Key)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, Certificates: []tls.Certificate{certificate},
	}}
	defer transport.CloseIdleConnections()
	url := s.Env(devcluster.EnvServerURL) + "/apis/configbutler.ai/v1alpha1/gitrepoconfigs"
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Remote-User", "admin")
	request.Header.Set("X-Remote-Group", "system:masters")
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close() // only the status matters
	return response.StatusCode
}

// rotateFrontProxy gives kube-apiserver another certificate for the front proxy, of another authority, and takes the old
// authority away. kube-apiserver reads the files again by itself. What it has proved itself with is returned.
func (s *stage) rotateFrontProxy(t *testing.T) (former, client pki.Pair) {
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
	s.eventually(t, "kube-apiserver to read its certificate", func(context.Context) error {
		if s.proxyCertificatesRead(t) == read {
			return errors.New("its log does not say so")
		}
		return nil
	})
	s.undisturbed(t, "front proxy of two authorities")
	s.trustFrontProxies(t, folder, next.Certificate)
	return former, client
}

// proxyCertificatesRead is how often kube-apiserver has read the certificate of the front proxy.
func (s *stage) proxyCertificatesRead(t *testing.T) int {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(s.Env(devcluster.EnvControlPlaneLogs), "kube-apiserver.log"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(content), `"Loaded a new cert/key pair" name="aggregator-proxy-cert::`)
}

// trustFrontProxies has kube-apiserver tell the servers behind it which authorities there are for front proxies, and
// waits until it does. It keeps those that it has told before until somebody takes them out.
func (s *stage) trustFrontProxies(t *testing.T, folder string, authorities ...[]byte) {
	t.Helper()
	const name = "extension-apiserver-authentication"
	if err := os.WriteFile(filepath.Join(folder, "front-proxy-ca.crt"), slices.Concat(authorities...), 0o600); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, "the authorities of front proxies", func(ctx context.Context) error {
		told, err := s.admin.Run(ctx, "get", "configmap", name, "-n", "kube-system", "-o", `go-template={{index .data "requestheader-client-ca-file"}}`)
		if err != nil {
			return err
		}
		count := strings.Count(told, "BEGIN CERTIFICATE")
		if count > len(authorities) {
			_, err := s.admin.Run(ctx, "delete", "configmap", name, "-n", "kube-system")
			return errors.Join(errors.New("those of before are still told"), err)
		}
		if count < len(authorities) {
			return errors.New("not all are told yet")
		}
		return nil
	})
}
