// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/pki"
	"github.com/configbutler/slipstream/test/testkit/notifytest"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// fault is something that can fail.
type fault struct {
	name string
	// part is what fails. Two faults at a time have different parts.
	part string
	// begin lets it fail. undo, which may be nil, repairs it.
	begin func(t *testing.T) (undo func())
}

// serverPart is the part of faults that end the server. It is repaired last: a server that starts needs everything else.
const serverPart = "server"

// faults returns all faults that are possible here.
func (s *soak) faults() []fault {
	all := []fault{
		{"server killed", serverPart, func(t *testing.T) func() { return s.endServer(t, syscall.SIGKILL) }},
		{"server restarted", serverPart, func(t *testing.T) func() { return s.endServer(t, syscall.SIGTERM) }},
		{"remote unreachable", "remote", func(*testing.T) func() {
			s.remote.sever()
			return s.remote.open
		}},
		{"remote fails", "remote", func(*testing.T) func() { return s.remote.respond(http.StatusInternalServerError, 1) }},
		{"remote refuses", "remote", func(*testing.T) func() { return s.remote.respond(http.StatusForbidden, 1) }},
		{"API server restarted", "API server", func(t *testing.T) func() {
			s.restartAPIServer(t)
			return nil
		}},
		{"API server busy", "connection", func(*testing.T) func() { return s.api.respond(http.StatusTooManyRequests, busyShare) }},
		{"watches expire", "connection", s.expireWatches},
		{"certificate renewed", "certificate", func(t *testing.T) func() {
			s.renewCertificate(t)
			return nil
		}},
		{"pipeline receiver fails", "pipeline", func(*testing.T) func() {
			s.receiver.Always(receivertest.Status(http.StatusInternalServerError))
			return func() { s.receiver.Always() }
		}},
		{"pipeline receiver hangs", "pipeline", func(*testing.T) func() {
			s.receiver.Always(receivertest.Hang())
			return func() { s.receiver.Always() }
		}},
		{"notification receiver fails", "notifications", func(*testing.T) func() {
			s.inbox.Always(notifytest.Answer{Status: http.StatusInternalServerError})
			return func() { s.inbox.Always() }
		}},
		{"notification receiver hangs", "notifications", func(*testing.T) func() {
			s.inbox.Always(notifytest.Answer{Hangs: true})
			return func() { s.inbox.Always() }
		}},
		{"foreign pushes", "branch", s.pushForeign},
	}
	if s.disk != nil {
		all = append(all, fault{"disk full", "disk", s.fillDisk})
	}
	return all
}

// endServer ends the server with a signal until it is started again.
func (s *soak) endServer(t *testing.T, signal syscall.Signal) (start func()) {
	t.Helper()
	if err := s.StopServer(t.Context(), signal); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := s.StartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// restartAPIServer restarts kube-apiserver, as a crash or an upgrade does. Events that it has not sent to the webhooks are lost.
func (s *soak) restartAPIServer(t *testing.T) {
	t.Helper()
	if err := s.RestartAPIServer(t.Context(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// busyShare is the share of requests that a busy API server rejects.
const busyShare = 0.7

// respond lets a gateway respond to a share of the requests with a status.
func (g *gateway) respond(status int, share float64) (undo func()) {
	g.set(func(w http.ResponseWriter, _ *http.Request) bool {
		if rand.Float64() >= share {
			return false
		}
		w.Header().Set("Retry-After", "1")
		http.Error(w, http.StatusText(status), status)
		return true
	})
	return g.open
}

// expireWatches severs the server's watches until the changes that they have missed are compacted.
func (s *soak) expireWatches(t *testing.T) (undo func()) {
	t.Helper()
	s.api.sever()
	return func() {
		t.Helper()
		s.ForgetHistory(t)
		s.api.open()
	}
}

// renewCertificate replaces the serving certificate, which the server has to serve without a restart. The change of two files is not
// atomic.
func (s *soak) renewCertificate(t *testing.T) {
	t.Helper()
	const authorityName, name = "slipstream-ca", "slipstream"
	folder := filepath.Join(filepath.Dir(filepath.Dir(string(s.Cluster.Admin()))), "pki")
	pair, err := pki.Read(folder, authorityName)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := pki.ParseAuthority(pair)
	if err != nil {
		t.Fatal(err)
	}
	if pair, err = authority.Server(name, "slipstream."+devcluster.ServerNamespace+".svc", "localhost", "127.0.0.1"); err != nil {
		t.Fatal(err)
	}
	if err := pair.Write(folder, name); err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	s.certificate = certificate.Certificate[0]
}

// fillDisk fills the disk of the server's stores.
func (s *soak) fillDisk(t *testing.T) (undo func()) {
	t.Helper()
	free, err := s.disk.fill()
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := free(); err != nil {
			t.Fatal(err)
		}
	}
}

// pushForeign has another writer push commits, beside the destination's folder, to all branches until it is stopped.
func (s *soak) pushForeign(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for number := 0; ctx.Err() == nil; number++ {
			m := s.mirrors[number%len(s.mirrors)]
			// It loses the race against a push of the server, and then pushes nothing.
			script := fmt.Sprintf(`set -e; cd %[1]s; export GIT_INDEX_FILE=$(mktemp -u)
export GIT_AUTHOR_NAME=%[2]s GIT_AUTHOR_EMAIL=j@example.com GIT_COMMITTER_NAME=%[2]s GIT_COMMITTER_EMAIL=j@example.com
tip=$(git rev-parse main); git read-tree $tip
git update-index --add --cacheinfo 100644,$(echo $tip | git hash-object -w --stdin),THEIRS
git update-ref refs/heads/main $(git commit-tree -p $tip -m theirs $(git write-tree)) $tip; rm $GIT_INDEX_FILE`, m.Repository, foreignAuthor)
			_ = runShell(context.WithoutCancel(ctx), script)
			pauseFor(ctx, foreignPause)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// checkCertificate waits until the server serves the certificate that was written last.
func (s *soak) checkCertificate(ctx context.Context) error {
	if s.certificate == nil {
		return nil
	}
	dialer := &tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}}
	connection, err := dialer.DialContext(ctx, "tcp", s.Env(devcluster.EnvServerURL)[len("https://"):])
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	served := connection.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw
	if string(served) != string(s.certificate) {
		return fmt.Errorf("the server serves a former certificate")
	}
	return nil
}
