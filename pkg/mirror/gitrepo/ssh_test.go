// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// sshServer runs git's services for clients with the key or the password.
type sshServer struct {
	t        *testing.T
	listener net.Listener
	config   *ssh.ServerConfig
	hostKeys []ssh.Signer
	// respond, if set, is called instead of running the command.
	respond atomic.Pointer[func(*ssh.ServerConn, ssh.Channel)]
	serving sync.WaitGroup
}

const sshPassword = "s3cret"

// newSSHServer starts a server. prepare may change what it accepts and presents.
func newSSHServer(t *testing.T, client ssh.PublicKey, prepare ...func(*sshServer)) *sshServer {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &sshServer{t: t, listener: listener, config: &ssh.ServerConfig{
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if string(key.Marshal()) != string(client.Marshal()) {
				return nil, errors.New("unknown key")
			}
			return &ssh.Permissions{}, nil
		},
		PasswordCallback: func(_ ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
			if string(password) != sshPassword {
				return nil, errors.New("wrong password")
			}
			return &ssh.Permissions{}, nil
		},
	}}
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	weak, _ := rsa.GenerateKey(rand.Reader, 2048)
	for _, key := range []any{ed, weak} {
		signer, err := ssh.NewSignerFromKey(key)
		if err != nil {
			t.Fatal(err)
		}
		s.config.AddHostKey(signer)
		s.hostKeys = append(s.hostKeys, signer)
	}
	for _, change := range prepare {
		change(s)
	}
	s.serving.Go(s.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		s.serving.Wait()
	})
	return s
}

func (s *sshServer) accept() {
	for {
		connection, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.serving.Go(func() {
			defer func() { _ = connection.Close() }()
			s.handle(connection)
		})
	}
}

func (s *sshServer) handle(connection net.Conn) {
	server, channels, requests, err := ssh.NewServerConn(connection, s.config)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	s.serving.Go(func() { ssh.DiscardRequests(requests) })
	for offered := range channels {
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		for request := range requests {
			if request.Type == "exec" {
				_ = request.Reply(true, nil)
				if respond := s.respond.Load(); respond != nil {
					(*respond)(server, channel)
				} else {
					s.execute(channel, string(request.Payload[4:]))
				}
				break
			}
		}
		s.serving.Go(func() { ssh.DiscardRequests(requests) })
	}
}

func (s *sshServer) execute(channel ssh.Channel, line string) {
	command := exec.Command("sh", "-c", line)
	command.Stdout, command.Stderr = channel, channel.Stderr()
	command.WaitDelay = time.Minute
	input, err := command.StdinPipe()
	if err != nil {
		return
	}
	s.serving.Go(func() {
		_, _ = io.Copy(input, channel)
		_ = input.Close()
	})
	status := struct{ Code uint32 }{}
	if command.Run() != nil {
		status.Code = 1
	}
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
	_ = channel.Close()
}

func (s *sshServer) address() string { return s.listener.Addr().String() }

func (s *sshServer) url(path string) string { return "ssh://git@" + s.address() + path }

func (s *sshServer) knownHosts() []byte {
	return []byte(knownhosts.Line([]string{s.address()}, s.hostKeys[0].PublicKey()) + "\n")
}

// clientKey returns a private key file and its public key.
func clientKey(t *testing.T, passphrase string) ([]byte, ssh.PublicKey) {
	t.Helper()
	_, key, _ := ed25519.GenerateKey(rand.Reader)
	block, err := ssh.MarshalPrivateKey(key, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block), signer.PublicKey()
}

func TestSSH(t *testing.T) {
	r := newRepository(t)
	key, public := clientKey(t, "")
	server := newSSHServer(t, public)
	remote := newRemote(t, server.url(r.path))
	remote.Credentials = gitrepo.Credentials{SSHPrivateKey: key, KnownHosts: server.knownHosts()}
	if err := remote.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	branch := load(t, remote, gitrepo.Options{})
	for i := range 3 {
		stage(t, branch, set("a", fmt.Sprint(i)), set("large", noise(1<<20)))
		push(t, branch)
	}
	r.clone().first("theirs", "theirs\n")
	refreshed(t, r, branch)
	r.hook("pre-receive", "echo 'not allowed' >&2; exit 1\n")
	stage(t, branch, set("a", "refused"))
	_, err := branch.Push(t.Context())
	hasKind(t, err, gitrepo.Rejected)
	if err == nil || !strings.Contains(err.Error(), "not allowed") {
		t.Errorf("error %v", err)
	}
	r.fsck()
	hasKind(t, sshRemote(t, remote, server.url("/no/such/repository's")).Check(t.Context()), gitrepo.NotFound)
}

func sshRemote(t *testing.T, like *gitrepo.Remote, url string) *gitrepo.Remote {
	t.Helper()
	remote := newRemote(t, url)
	remote.Credentials = like.Credentials
	return remote
}

func TestSSHCredentials(t *testing.T) {
	r := newRepository(t)
	locked, public := clientKey(t, "open sesame")
	other, _ := clientKey(t, "")
	server := newSSHServer(t, public)
	for name, test := range map[string]struct {
		credentials gitrepo.Credentials
		want        gitrepo.Kind
	}{
		"key with passphrase": {gitrepo.Credentials{SSHPrivateKey: locked, SSHPassphrase: []byte("open sesame")}, ""},
		"password":            {gitrepo.Credentials{Password: sshPassword}, ""},
		"wrong passphrase":    {gitrepo.Credentials{SSHPrivateKey: locked, SSHPassphrase: []byte("x")}, gitrepo.Invalid},
		"no passphrase":       {gitrepo.Credentials{SSHPrivateKey: locked}, gitrepo.Invalid},
		"very large key":      {gitrepo.Credentials{SSHPrivateKey: slices.Concat(other, bytes.Repeat([]byte("\n"), 16<<10))}, gitrepo.Invalid},
		"other key":           {gitrepo.Credentials{SSHPrivateKey: other}, gitrepo.Unauthorized},
		"none":                {gitrepo.Credentials{}, gitrepo.Unauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			remote := newRemote(t, server.url(r.path))
			remote.Credentials = test.credentials
			remote.Credentials.KnownHosts = server.knownHosts()
			err := remote.Check(t.Context())
			if test.want != "" {
				hasKind(t, err, test.want)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestKnownHosts(t *testing.T) {
	r := newRepository(t)
	key, public := clientKey(t, "")
	server := newSSHServer(t, public)
	_, stranger := clientKey(t, "")
	host, port, _ := net.SplitHostPort(server.address())
	line := func(name string, key ssh.PublicKey) string { return knownhosts.Line([]string{name}, key) + "\n" }
	raw := func(patterns string, key ssh.PublicKey) string {
		return patterns + " " + string(ssh.MarshalAuthorizedKey(key))
	}
	own, weak := server.hostKeys[0].PublicKey(), server.hostKeys[1].PublicKey()
	for name, test := range map[string]struct {
		hosts string
		want  gitrepo.Kind
	}{
		"plain":           {line(server.address(), own), ""},
		"RSA only":        {line(server.address(), weak), ""},
		"hashed":          {raw(knownhosts.HashHostname(knownhosts.Normalize(server.address())), own), ""},
		"comments":        {"# comment\n\n" + line("example.com", stranger) + line(server.address(), own), ""},
		"wildcard":        {raw("[127.0.0.?]:*", own), ""},
		"several":         {raw("example.com,["+host+"]:"+port, own), ""},
		"negated":         {raw("[*]:*,!["+host+"]:"+port, own), gitrepo.Unauthorized},
		"other port":      {line(host+":1", own), gitrepo.Unauthorized},
		"default port":    {line(host, own), gitrepo.Unauthorized},
		"other key":       {line(server.address(), stranger), gitrepo.Unauthorized},
		"hashed, other":   {raw(knownhosts.HashHostname("example.com"), own), gitrepo.Unauthorized},
		"revoked":         {line(server.address(), own) + "@revoked " + raw("*", own), gitrepo.Unauthorized},
		"authority only":  {"@cert-authority " + raw("*", own), gitrepo.Unauthorized},
		"none":            {"\n", gitrepo.Invalid},
		"malformed":       {"hello world\n", gitrepo.Invalid},
		"brackets as set": {raw("[127.0.0.1]:"+port+"[", own), gitrepo.Unauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			remote := newRemote(t, server.url(r.path))
			remote.Credentials = gitrepo.Credentials{SSHPrivateKey: key, KnownHosts: []byte(test.hosts)}
			err := remote.Check(t.Context())
			if test.want != "" {
				hasKind(t, err, test.want)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCancelSSH tests servers that do not respond: before the handshake, and after the command.
func TestCancelSSH(t *testing.T) {
	key, public := clientKey(t, "")
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	remote := newRemote(t, "ssh://git@"+silent.Addr().String()+"/x")
	remote.Credentials = gitrepo.Credentials{
		SSHPrivateKey: key, KnownHosts: []byte(knownhosts.Line([]string{silent.Addr().String()}, public)),
	}
	checkCanceled(t, "handshake", remote.Check)

	server := newSSHServer(t, public)
	r := newRepository(t)
	r.hook("pre-receive", "exec sleep 2 >/dev/null 2>&1\n")
	remote = newRemote(t, server.url(r.path))
	remote.Credentials = gitrepo.Credentials{SSHPrivateKey: key, KnownHosts: server.knownHosts()}
	branch := load(t, remote, gitrepo.Options{})
	stage(t, branch, set("a", "a"))
	checkCanceled(t, "push", func(ctx context.Context) error { _, err := branch.Push(ctx); return err })
}
