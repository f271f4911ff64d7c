// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/test/devcluster/gitserver"
	"github.com/configbutler/slipstream/test/devcluster/pki"
	"github.com/configbutler/slipstream/test/testkit"
)

// gitServers serve the same repositories with different kinds of authentication.
type gitServers struct {
	authority, client pki.Pair
	// locked requires a name and password or a token, byToken a token as the password with any name that is not empty, and mutual a client
	// certificate; all use TLS with the authority.
	locked, byToken, mutual string
	// ssh requires the private key; knownHosts has its host key.
	ssh         string
	private     []byte
	lockedByKey []byte
	knownHosts  []byte
}

func newGitServers(t *testing.T) *gitServers {
	t.Helper()
	repositories, err := gitserver.NewRepositories(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	git, err := repositories.Handler()
	if err != nil {
		t.Fatal(err)
	}
	authority, err := pki.NewAuthority("private authority")
	if err != nil {
		t.Fatal(err)
	}
	s := &gitServers{authority: authority.Pair}
	if s.client, err = authority.Client("mirror"); err != nil {
		t.Fatal(err)
	}
	s.locked = serveTLS(t, authority, tls.NoClientCert, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, password, _ := r.BasicAuth()
		if (name != "bot" || password != "pa55") && r.Header.Get("Authorization") != "Bearer t0ken" {
			http.Error(w, "who are you? "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		git.ServeHTTP(w, r)
	}))
	s.byToken = serveTLS(t, authority, tls.NoClientCert, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, password, _ := r.BasicAuth(); name == "" || password != "t0ken" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		git.ServeHTTP(w, r)
	}))
	s.mutual = serveTLS(t, authority, tls.RequireAndVerifyClientCert, git)
	s.serveSSH(t, repositories)
	return s
}

func serveTLS(t *testing.T, authority *pki.Authority, clients tls.ClientAuthType, handler http.Handler) string {
	t.Helper()
	pair, err := authority.Server("git", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.Pair.Certificate)
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}, ClientAuth: clients, ClientCAs: pool}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func (s *gitServers) serveSSH(t *testing.T, repositories *gitserver.Repositories) {
	t.Helper()
	hostKey, _ := newSSHKey(t, "")
	host, err := ssh.ParsePrivateKey(hostKey)
	if err != nil {
		t.Fatal(err)
	}
	var public, lockedPublic string
	s.private, public = newSSHKey(t, "")
	s.lockedByKey, lockedPublic = newSSHKey(t, "open sesame")
	authorized := filepath.Join(t.TempDir(), "authorized_keys")
	if err := os.WriteFile(authorized, []byte(public+lockedPublic), 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := gitserver.NewSSH(repositories, hostKey, authorized)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve SSH: %v", err)
		}
	})
	s.ssh = "ssh://git@" + listener.Addr().String()
	s.knownHosts = []byte(knownhosts.Line([]string{listener.Addr().String()}, host.PublicKey()) + "\n")
}

// TestSecretsOfAllShapes pushes with every form of credentials, with the key names of this project, Flux and Argo CD.
func TestSecretsOfAllShapes(t *testing.T) {
	servers := newGitServers(t)
	stranger, _ := newSSHKey(t, "")
	certificate := string(newSSHCertificate(t, stranger, time.Unix(1e9, 0)))
	authority, client := string(servers.authority.Certificate), servers.client
	private, known := string(servers.private), string(servers.knownHosts)
	for name, test := range map[string]struct {
		url    string
		data   map[string]string
		reason string
		says   string
	}{
		"password":              {servers.locked, map[string]string{"username": "bot", "password": "pa55", "caBundle": authority}, "", ""},
		"password, Flux":        {servers.locked, map[string]string{"username": "bot", "password": "pa55", "ca.crt": authority}, "", ""},
		"password, older Flux":  {servers.locked, map[string]string{"username": "bot", "password": "pa55", "caFile": authority}, "", ""},
		"token as password":     {servers.byToken, map[string]string{"password": "t0ken", "caBundle": authority}, "", ""},
		"token beside no name":  {servers.byToken, map[string]string{"username": "", "password": "t0ken", "caBundle": authority}, "", ""},
		"token":                 {servers.locked, map[string]string{"bearerToken": "t0ken", "ca.crt": authority}, "", ""},
		"token by another name": {servers.locked, map[string]string{"token": "t0ken", "ca.crt": authority}, "", ""},
		"token, Argo CD": {
			servers.locked, map[string]string{"type": "git", "url": "x", "bearerToken": "t0ken", "caBundle": authority}, "", "",
		},
		"client certificate": {
			servers.mutual, map[string]string{"tls.crt": string(client.Certificate), "tls.key": string(client.Key), "ca.crt": authority}, "", "",
		},
		"client certificate, Flux": {
			servers.mutual, map[string]string{"certFile": string(client.Certificate), "keyFile": string(client.Key), "caFile": authority}, "", "",
		},
		"client certificate, Argo CD": {
			servers.mutual,
			map[string]string{"tlsClientCertData": string(client.Certificate), "tlsClientCertKey": string(client.Key), "caBundle": authority},
			"", "",
		},
		"SSH":       {servers.ssh, map[string]string{"ssh-privatekey": private, "known_hosts": known}, "", ""},
		"SSH, Flux": {servers.ssh, map[string]string{"identity": private, "identity.pub": "x", "known_hosts": known}, "", ""},
		"SSH, Argo CD": {
			servers.ssh, map[string]string{"type": "git", "url": "x", "sshPrivateKey": private, "known_hosts": known}, "", "",
		},
		"SSH, locked": {
			servers.ssh, map[string]string{"ssh-privatekey": string(servers.lockedByKey), "passphrase": "open sesame", "known_hosts": known}, "", "",
		},
		"SSH, locked, Flux": {
			servers.ssh, map[string]string{"identity": string(servers.lockedByKey), "password": "open sesame", "known_hosts": known}, "", "",
		},

		"wrong password": {
			servers.locked, map[string]string{"username": "bot", "password": "gue55", "ca.crt": authority},
			v1alpha1.ReasonAuthenticationFailed, "refuses the credentials",
		},
		"wrong token": {
			servers.locked, map[string]string{"bearerToken": "gue55", "ca.crt": authority},
			v1alpha1.ReasonAuthenticationFailed, "refuses the credentials",
		},
		"authority is not known": {
			servers.locked, map[string]string{"bearerToken": "t0ken"},
			v1alpha1.ReasonRepositoryUnreachable, "certificate signed by unknown authority",
		},
		"no client certificate": {
			servers.mutual, map[string]string{"ca.crt": authority}, v1alpha1.ReasonRepositoryUnreachable, "certificate required",
		},
		"half a certificate": {
			servers.mutual, map[string]string{"tls.crt": string(client.Certificate), "ca.crt": authority},
			v1alpha1.ReasonSecretInvalid, "both tls.crt and tls.key",
		},
		"no credentials": {
			servers.locked, map[string]string{"x": "y"}, v1alpha1.ReasonSecretInvalid,
			"Secret shop/git needs the key password, and username unless the server accepts any, or the key bearerToken, for an HTTP URL",
		},
		"no username": {
			servers.locked, map[string]string{"user": "bot", "password": "pa55", "ca.crt": authority},
			v1alpha1.ReasonAuthenticationFailed, "refuses the credentials",
		},
		"empty password": {
			servers.locked, map[string]string{"username": "bot", "password": "", "ca.crt": authority},
			v1alpha1.ReasonSecretInvalid, "; its key password is empty",
		},
		"empty token": {
			servers.locked, map[string]string{"token": ""}, v1alpha1.ReasonSecretInvalid, "; its key token is empty",
		},
		"empty key of a certificate": {
			servers.mutual, map[string]string{"tls.crt": string(client.Certificate), "tls.key": ""},
			v1alpha1.ReasonSecretInvalid, "; its key tls.key is empty",
		},
		"GitHub App": {
			servers.locked,
			map[string]string{"githubAppID": "1", "githubAppInstallationID": "2", "githubAppPrivateKey": "gue55", "ca.crt": authority},
			v1alpha1.ReasonSecretInvalid, "to log in as a GitHub App, set spec.provider to github",
		},
		"SSH, no key": {
			servers.ssh, map[string]string{"username": "bot", "password": "pa55", "known_hosts": known},
			v1alpha1.ReasonSecretInvalid, "ssh-privatekey (or identity)",
		},
		"SSH, no known hosts": {servers.ssh, map[string]string{"identity": private}, v1alpha1.ReasonSecretInvalid, "known_hosts"},
		"SSH, empty known hosts": {
			servers.ssh, map[string]string{"identity": private, "known_hosts": ""}, v1alpha1.ReasonSecretInvalid, "; its key known_hosts is empty",
		},
		"SSH, empty key": {
			servers.ssh, map[string]string{"ssh-privatekey": "", "known_hosts": known},
			v1alpha1.ReasonSecretInvalid, "; its key ssh-privatekey is empty",
		},
		"SSH, certificate of another key": {
			servers.ssh, map[string]string{"ssh-privatekey": private, "ssh-privatekey-cert.pub": certificate, "known_hosts": known},
			v1alpha1.ReasonSecretInvalid, "the SSH certificate is for another key",
		},
		"SSH, certificate, Flux": {
			servers.ssh, map[string]string{"identity": string(stranger), "identity-cert.pub": certificate, "known_hosts": known},
			v1alpha1.ReasonSecretInvalid, "the SSH certificate expired at 2001-09-09T01:46:40Z",
		},
		"SSH, other key": {
			servers.ssh, map[string]string{"identity": string(stranger), "known_hosts": known},
			v1alpha1.ReasonAuthenticationFailed, "refuses the credentials",
		},
		"SSH, wrong passphrase": {
			servers.ssh, map[string]string{"identity": string(servers.lockedByKey), "passphrase": "gue55", "known_hosts": known},
			v1alpha1.ReasonSecretInvalid, "cannot be used",
		},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "git"}, Data: map[string][]byte{}}
			for key, value := range test.data {
				secret.Data[key] = []byte(value)
			}
			config := &v1alpha1.GitRepoConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "repo"}, Spec: v1alpha1.GitRepoConfigSpec{
				RepoURL: test.url + "/shop.git", SecretRef: &v1alpha1.SecretReference{Name: "git"},
			}}
			repositories := &repositories{cluster: fake.NewClientset(secret)}
			err := pushOnce(t, repositories, config, name)
			v := reasonOf(err, v1alpha1.ReasonPushFailed)
			if v.Code != test.reason || !strings.Contains(v.Message, test.says) {
				t.Errorf("%s: %q, want %s: %q", v.Code, v.Message, test.reason, test.says)
			}
			for _, hidden := range []string{"pa55", "gue55", "t0ken", "open sesame", "PRIVATE KEY", "Ym90O"} {
				if strings.Contains(v.Message, hidden) {
					t.Errorf("message contains %q: %s", hidden, v.Message)
				}
			}
		})
	}
}

// newSSHCertificate returns a user certificate for a private key that ends at a time.
func newSSHCertificate(t *testing.T, private []byte, end time.Time) []byte {
	t.Helper()
	key, err := ssh.ParsePrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	by, _ := newSSHKey(t, "")
	authority, err := ssh.ParsePrivateKey(by)
	if err != nil {
		t.Fatal(err)
	}
	certificate := &ssh.Certificate{
		Key: key.PublicKey(), CertType: ssh.UserCert, ValidPrincipals: []string{"git"}, ValidBefore: uint64(end.Unix()),
	}
	if err := certificate.SignCert(rand.Reader, authority); err != nil {
		t.Fatal(err)
	}
	return ssh.MarshalAuthorizedKey(certificate)
}

// TestReadyNamesTheEndOfACertificate checks what the condition says while a repository is used with the credentials.
func TestReadyNamesTheEndOfACertificate(t *testing.T) {
	key, _ := newSSHKey(t, "")
	for want, certificate := range map[string][]byte{
		"; the SSH certificate is valid until 2030-01-01T00:00:00Z": newSSHCertificate(t, key, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)),
		"": nil,
	} {
		config := &v1alpha1.GitRepoConfig{}
		updateRepositoryStatus(config, 1, conditions.Reason{}, certificateNote(gitrepo.Credentials{SSHPrivateKey: key, SSHCertificate: certificate}))
		if got := config.Status.Conditions[0].Message; !strings.HasSuffix(got, "take pushes"+want) {
			t.Errorf("message %q, want %q", got, want)
		}
	}
}

// pushOnce pushes one file with the content.
func pushOnce(t *testing.T, repositories *repositories, config *v1alpha1.GitRepoConfig, content string) error {
	t.Helper()
	remote, err := repositories.remote(t.Context(), config)
	if err != nil {
		return err
	}
	defer remote.Close()
	if err := remote.Check(t.Context()); err != nil {
		return err
	}
	branch, err := gitrepo.Load(t.Context(), remote, "main", gitrepo.Options{})
	if err != nil {
		return err
	}
	if _, _, err := branch.Stage(
		gitrepo.Commit{Message: "change", Changes: []gitrepo.Change{{Path: "a", Content: []byte(content)}}}); err != nil {
		return err
	}
	_, err = branch.Push(t.Context())
	return err
}

// TestCredentialsAreRotated changes a password on the server and later in the Secret.
func TestCredentialsAreRotated(t *testing.T) {
	secret := func(password string) map[string][]byte {
		return map[string][]byte{"username": []byte("bot"), "password": []byte(password)}
	}
	s := newFixture(t, pollOften, func(s *fixture) {
		s.in.repositories[0].Spec.SecretRef = &v1alpha1.SecretReference{Name: "git"}
		s.putSecret("git", secret("first"))
		s.git.require("bot", "first")
	})
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.git.require("bot", "second")
	s.cluster.put(configMap("a"), "2")
	if ready := s.waitReady("main", v1alpha1.ReasonAuthenticationFailed); strings.Contains(ready.Message, "first") {
		t.Errorf("message = %q", ready.Message)
	}
	s.waitRechecks(1)
	s.putSecret("git", secret("second"))
	s.mirrored()
	s.waitReady("main", v1alpha1.ReasonSucceeded)
	s.waitRechecks(2)
}

// waitRechecks waits until branches have requested at least n checks of the repository.
func (s *fixture) waitRechecks(n int64) {
	s.t.Helper()
	testkit.Eventually(s.t, "looks at the repository", func() error {
		if got := s.rechecks.Load(); got < n {
			return fmt.Errorf("%d checks requested, want %d", got, n)
		}
		return nil
	})
}
