// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// certificateTimes are those of the certificates in tests.
var certificateTimes = struct{ after, now, before time.Time }{
	time.Date(2030, 1, 1, 8, 0, 0, 0, time.UTC), time.Date(2030, 1, 1, 9, 0, 0, 0, time.UTC), time.Date(2030, 1, 1, 10, 0, 0, 0, time.UTC),
}

// sshAuthority signs certificates that are valid around certificateTimes.now.
type sshAuthority struct{ ssh.Signer }

func newSSHAuthority(t *testing.T) sshAuthority {
	t.Helper()
	_, key, _ := ed25519.GenerateKey(rand.Reader)
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return sshAuthority{signer}
}

// sign returns a certificate of a key, after change has changed it.
func (a sshAuthority) sign(t *testing.T, key ssh.PublicKey, kind uint32, principal string, change ...func(*ssh.Certificate)) *ssh.Certificate {
	t.Helper()
	certificate := &ssh.Certificate{
		Key: key, CertType: kind, ValidPrincipals: []string{principal}, KeyId: "test",
		ValidAfter: uint64(certificateTimes.after.Unix()), ValidBefore: uint64(certificateTimes.before.Unix()),
	}
	for _, each := range change {
		each(certificate)
	}
	if err := certificate.SignCert(rand.Reader, a); err != nil {
		t.Fatal(err)
	}
	return certificate
}

// host returns the signer of a host with a certificate, which change may change unless it is nil.
func (a sshAuthority) host(t *testing.T, host ssh.Signer, change func(*ssh.Certificate)) ssh.Signer {
	t.Helper()
	if change == nil {
		change = func(*ssh.Certificate) {}
	}
	with, err := ssh.NewCertSigner(a.sign(t, host.PublicKey(), ssh.HostCert, "127.0.0.1", change), host)
	if err != nil {
		t.Fatal(err)
	}
	return with
}

// requireCertificate makes the server accept only user certificates of the authority.
func (s *sshServer) requireCertificate(authority sshAuthority) {
	checker := ssh.CertChecker{
		IsUserAuthority: func(key ssh.PublicKey) bool { return string(key.Marshal()) == string(authority.PublicKey().Marshal()) },
		Clock:           func() time.Time { return certificateTimes.now },
	}
	s.config.PasswordCallback = nil
	s.config.PublicKeyCallback = func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if _, ok := key.(*ssh.Certificate); !ok {
			return nil, errors.New("no certificate")
		}
		return checker.Authenticate(meta, key)
	}
}

func TestSSHUserCertificates(t *testing.T) {
	r := newRepository(t)
	key, public := clientKey(t, "")
	locked, lockedPublic := clientKey(t, "open sesame")
	_, stranger := clientKey(t, "")
	authority, other := newSSHAuthority(t), newSSHAuthority(t)
	server := newSSHServer(t, public, func(s *sshServer) { s.requireCertificate(authority) })
	certificate := func(by sshAuthority, key ssh.PublicKey, kind uint32, change ...func(*ssh.Certificate)) []byte {
		return ssh.MarshalAuthorizedKey(by.sign(t, key, kind, "git", change...))
	}
	at := certificateTimes.now
	for name, test := range map[string]struct {
		credentials gitrepo.Credentials
		now         time.Time
		want        gitrepo.Kind
		says        string
	}{
		"valid":    {gitrepo.Credentials{SSHPrivateKey: key, SSHCertificate: certificate(authority, public, ssh.UserCert)}, at, "", ""},
		"no limit": {gitrepo.Credentials{SSHPrivateKey: key, SSHCertificate: certificate(authority, public, ssh.UserCert, endless)}, at, "", ""},
		"locked key": {gitrepo.Credentials{
			SSHPrivateKey: locked, SSHPassphrase: []byte("open sesame"), SSHCertificate: certificate(authority, lockedPublic, ssh.UserCert),
		}, at, "", ""},
		"no certificate": {gitrepo.Credentials{SSHPrivateKey: key}, at, gitrepo.Unauthorized, "refuses the credentials"},
		"other authority": {
			gitrepo.Credentials{SSHPrivateKey: key, SSHCertificate: certificate(other, public, ssh.UserCert)}, at,
			gitrepo.Unauthorized, "refuses the credentials",
		},
		"expired": {
			gitrepo.Credentials{SSHPrivateKey: key, SSHCertificate: certificate(authority, public, ssh.UserCert)}, certificateTimes.before,
			gitrepo.Invalid, "expired at 2030-01-01T10:00:00Z",
		},
		"not yet valid": {
			gitrepo.Credentials{SSHPrivateKey: key, SSHCertificate: certificate(authority, public, ssh.UserCert)},
			certificateTimes.after.Add(-time.Second), gitrepo.Invalid, "not valid before 2030-01-01T08:00:00Z",
		},
		"other key": {
			gitrepo.Credentials{SSHPrivateKey: key, SSHCertificate: certificate(authority, stranger, ssh.UserCert)}, at,
			gitrepo.Invalid, "for another key, " + ssh.FingerprintSHA256(stranger),
		},
		"host certificate": {
			gitrepo.Credentials{SSHPrivateKey: key, SSHCertificate: certificate(authority, public, ssh.HostCert)}, at,
			gitrepo.Invalid, "is one for hosts",
		},
		"public key": {
			gitrepo.Credentials{SSHPrivateKey: key, SSHCertificate: ssh.MarshalAuthorizedKey(public)}, at, gitrepo.Invalid, "is a public key",
		},
		"text":  {gitrepo.Credentials{SSHPrivateKey: key, SSHCertificate: []byte("x")}, at, gitrepo.Invalid, "ssh-keygen -s"},
		"large": {gitrepo.Credentials{SSHPrivateKey: key, SSHCertificate: make([]byte, 33<<10)}, at, gitrepo.Invalid, "larger than 32 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			remote := newRemote(t, server.url(r.path))
			remote.Credentials, remote.Now = test.credentials, func() time.Time { return test.now }
			remote.Credentials.KnownHosts = server.knownHosts()
			checkLogin(t, remote, test.want, test.says)
		})
	}
}

func endless(c *ssh.Certificate) { c.ValidBefore = ssh.CertTimeInfinity }

// checkLogin checks a remote and what it says.
func checkLogin(t *testing.T, remote *gitrepo.Remote, want gitrepo.Kind, says string) {
	t.Helper()
	err := remote.Check(t.Context())
	switch {
	case want == "" && err != nil:
		t.Error(err)
	case want != "":
		hasKind(t, err, want)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want %q", err, says)
		}
	}
}

func TestSSHCertificateEnd(t *testing.T) {
	authority := newSSHAuthority(t)
	_, public := clientKey(t, "")
	for name, test := range map[string]struct {
		change []func(*ssh.Certificate)
		want   time.Time
	}{
		"at a time": {nil, certificateTimes.before},
		"never":     {[]func(*ssh.Certificate){endless}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := gitrepo.SSHCertificateEnd(ssh.MarshalAuthorizedKey(authority.sign(t, public, ssh.UserCert, "git", test.change...)))
			if err != nil || !got.Equal(test.want) {
				t.Errorf("%v, %v, want %v", got, err, test.want)
			}
		})
	}
}

func TestHostCertificates(t *testing.T) {
	r := newRepository(t)
	key, public := clientKey(t, "")
	authority, other := newSSHAuthority(t), newSSHAuthority(t)
	line := func(marker string, key ssh.PublicKey) string {
		return marker + " * " + string(ssh.MarshalAuthorizedKey(key))
	}
	for name, test := range map[string]struct {
		rsa    bool
		change func(*ssh.Certificate)
		hosts  func(host ssh.PublicKey) string
		want   gitrepo.Kind
		says   string
	}{
		"by the authority": {hosts: func(ssh.PublicKey) string { return line("@cert-authority", authority.PublicKey()) }},
		"RSA":              {rsa: true, hosts: func(ssh.PublicKey) string { return line("@cert-authority", authority.PublicKey()) }},
		"other authority": {
			hosts: func(ssh.PublicKey) string { return line("@cert-authority", other.PublicKey()) },
			want:  gitrepo.Unauthorized, says: "is not the one in known_hosts",
		},
		"other authority, but the key is known": {
			hosts: func(host ssh.PublicKey) string { return line("@cert-authority", other.PublicKey()) + line("", host) },
		},
		"authority of other hosts": {
			hosts: func(ssh.PublicKey) string {
				return "@cert-authority *.example.com " + string(ssh.MarshalAuthorizedKey(authority.PublicKey()))
			},
			want: gitrepo.Unauthorized, says: "nor an authority for it",
		},
		"authority as the key of the host": {
			hosts: func(ssh.PublicKey) string { return line("", authority.PublicKey()) },
			want:  gitrepo.Unauthorized, says: "is not the one in known_hosts",
		},
		"revoked authority": {
			hosts: func(ssh.PublicKey) string {
				return line("@cert-authority", authority.PublicKey()) + line("@revoked", authority.PublicKey())
			},
			want: gitrepo.Unauthorized, says: "is revoked",
		},
		"revoked key": {
			hosts: func(host ssh.PublicKey) string {
				return line("@cert-authority", authority.PublicKey()) + line("@revoked", host)
			},
			want: gitrepo.Unauthorized, says: "is revoked",
		},
		"expired": {
			change: func(c *ssh.Certificate) { c.ValidBefore = uint64(certificateTimes.now.Unix()) },
			hosts:  func(ssh.PublicKey) string { return line("@cert-authority", authority.PublicKey()) },
			want:   gitrepo.Unauthorized, says: "expired",
		},
		"other host": {
			change: func(c *ssh.Certificate) { c.ValidPrincipals = []string{"git.example.com"} },
			hosts:  func(ssh.PublicKey) string { return line("@cert-authority", authority.PublicKey()) },
			want:   gitrepo.Unauthorized, says: "principal",
		},
		"user certificate": {
			change: func(c *ssh.Certificate) { c.CertType = ssh.UserCert },
			hosts:  func(ssh.PublicKey) string { return line("@cert-authority", authority.PublicKey()) },
			want:   gitrepo.Unauthorized, says: "certificate presented as a host key",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var host ssh.Signer
			server := newSSHServer(t, public, func(s *sshServer) {
				host = s.hostKeys[0]
				if test.rsa {
					host = s.hostKeys[1]
				}
				s.config.AddHostKey(authority.host(t, host, test.change))
			})
			remote := newRemote(t, server.url(r.path))
			remote.Credentials = gitrepo.Credentials{SSHPrivateKey: key, KnownHosts: []byte(test.hosts(host.PublicKey()))}
			remote.Now = func() time.Time { return certificateTimes.now }
			checkLogin(t, remote, test.want, test.says)
		})
	}
	t.Run("no certificate", func(t *testing.T) {
		remote := newRemote(t, newSSHServer(t, public).url(r.path))
		remote.Credentials = gitrepo.Credentials{SSHPrivateKey: key, KnownHosts: []byte(line("@cert-authority", authority.PublicKey()))}
		checkLogin(t, remote, gitrepo.Unauthorized, "none of the host keys and certificates")
	})
}
