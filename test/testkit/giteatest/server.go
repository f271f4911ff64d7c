// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package giteatest starts the Git host Gitea, with users, repositories and pull requests.
package giteatest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/testkit"
)

// administrator is the user with whose rights the Server creates and changes everything.
const administrator = "administrator"

// Server is a Gitea on loopback, which is stopped when the test ends.
type Server struct {
	// URL is the address of the pages, the API, and Git over HTTP.
	URL string
	// KnownHosts is the line of an OpenSSH known_hosts file for Git over SSH.
	KnownHosts string
	// Admin is the administrator.
	Admin *User

	installed *installation
	// ssh is the address of Git over SSH.
	ssh string
	// input is open while Gitea runs.
	input   io.Closer
	running *exec.Cmd
}

// Start starts a Gitea with an administrator and without repositories. The first call builds it, which takes minutes.
func Start(t testing.TB) *Server {
	t.Helper()
	free := testkit.FreeAddresses(t, 2)
	web, ssh := free[0], free[1]
	s := &Server{URL: "http://" + web, ssh: ssh}
	s.Admin = &User{Name: administrator, Password: password(administrator), server: s}
	s.installed = install(t, settings(web, ssh))
	s.installed.run(t, "migrate")
	s.installed.run(t, "admin", "user", "create", "--admin", "--username="+s.Admin.Name, "--password="+s.Admin.Password,
		"--email="+address(s.Admin.Name), "--must-change-password=false")
	t.Cleanup(func() {
		s.Stop(t)
		if t.Failed() {
			t.Logf("Gitea:\n%s", s.installed.log())
		}
	})
	s.StartAgain(t)
	s.KnownHosts = s.hostKey(t)
	return s
}

// supervisor runs Gitea until its own input ends, which is when the process that started it has ended, for whatever reason.
const supervisor = `"$0" "$@" & cat; kill $! && wait $!`

// StartAgain starts a stopped Gitea, on the same ports, and waits until it serves.
func (s *Server) StartAgain(t testing.TB) {
	t.Helper()
	command, err := s.installed.command(context.WithoutCancel(t.Context()), "/bin/sh", "-c", supervisor, s.installed.program, "web")
	if err != nil {
		t.Fatal(err)
	}
	// Interrupts from the terminal are for the test, whose end ends Gitea.
	command.SysProcAttr.Setsid = true
	log, err := os.OpenFile(s.installed.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	command.Stdout, command.Stderr = log, log
	if s.input, err = command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	s.running = command
	testkit.EventuallyWithin(t, testkit.Timeout, "Gitea serves", func(ctx context.Context) error {
		if err := s.Admin.call(ctx, http.MethodGet, "/version", nil, nil); err != nil {
			return fmt.Errorf("%w\n%s", err, s.installed.log())
		}
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.ssh)
		if err == nil {
			err = connection.Close()
		}
		return err
	})
}

// Stop stops Gitea, which keeps its data, and does nothing if it is stopped.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if s.running == nil {
		return
	}
	_ = s.input.Close()
	_ = s.running.Wait() // It was killed, or has ended before.
	s.running = nil
}

// hostKey returns the line of known_hosts for the key that Gitea has created.
func (s *Server) hostKey(t testing.TB) string {
	t.Helper()
	host, port, err := net.SplitHostPort(s.ssh)
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(s.installed.folder, "data", "ssh", "gitea.rsa.pub"))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("[%s]:%s %s\n", host, port, strings.TrimSpace(string(key)))
}
