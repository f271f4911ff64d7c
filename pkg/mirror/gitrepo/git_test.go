// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo_test

import (
	"context"
	"log"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/test/testkit"
)

// repository is a bare repository, created by the git command.
type repository struct {
	t    *testing.T
	path string
}

func newRepository(t *testing.T) repository {
	t.Helper()
	r := repository{t: t, path: filepath.Join(t.TempDir(), "repository.git")}
	// Git can still write to the repository after a push was canceled.
	t.Cleanup(func() {
		testkit.Eventually(t, "the repository can be removed", func() error { return os.RemoveAll(r.path) })
	})
	run(t, "", "git", "init", "--quiet", "--bare", "--initial-branch=main", r.path)
	r.git("config", "http.receivepack", "true")
	r.git("config", "uploadpack.allowFilter", "true")
	return r
}

func (r repository) git(arguments ...string) string {
	r.t.Helper()
	return run(r.t, r.path, "git", arguments...)
}

// fsck fails the test if git fsck reports anything.
func (r repository) fsck() {
	r.t.Helper()
	if output := r.git("fsck", "--strict", "--full", "--no-dangling"); output != "" {
		r.t.Errorf("git fsck: %s", output)
	}
}

func (r repository) files(revision string) map[string]string {
	r.t.Helper()
	files := map[string]string{}
	for line := range strings.Lines(r.git("ls-tree", "-r", "-z", revision)) {
		for record := range strings.SplitSeq(strings.Trim(line, "\x00\n"), "\x00") {
			if head, path, found := strings.Cut(record, "\t"); found {
				files[path] = strings.Join(strings.Fields(head)[:1], "") + " " + strings.Fields(head)[2]
			}
		}
	}
	return files
}

// hook installs a shell script as a hook.
func (r repository) hook(name, script string) {
	r.t.Helper()
	path := filepath.Join(r.path, "hooks", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		r.t.Fatal(err)
	}
}

// serve serves the repository over HTTP with git http-backend and returns its URL.
func (r repository) serve(wrap func(http.Handler) http.Handler) string {
	r.t.Helper()
	server := httptest.NewServer(wrap(r.backend()))
	r.t.Cleanup(server.Close)
	return server.URL + "/" + filepath.Base(r.path)
}

func (r repository) backend() http.Handler {
	return &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(run(r.t, "", "git", "--exec-path")), "git-http-backend"),
		Env: []string{
			"GIT_PROJECT_ROOT=" + filepath.Dir(r.path), "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=test",
			"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		},
		Stderr: r.t.Output(), Logger: log.New(r.t.Output(), "", 0),
	}
}

func plain(handler http.Handler) http.Handler { return handler }

// newRemote returns a remote that is closed at the end of the test.
func newRemote(t *testing.T, url string) *gitrepo.Remote {
	t.Helper()
	remote := &gitrepo.Remote{URL: url}
	t.Cleanup(remote.Close)
	return remote
}

// writer is a clone of another user.
type writer struct {
	t    *testing.T
	path string
}

func (r repository) clone() writer {
	r.t.Helper()
	w := writer{t: r.t, path: filepath.Join(r.t.TempDir(), "clone")}
	run(r.t, "", "git", "clone", "--quiet", r.path, w.path)
	return w
}

func (w writer) git(arguments ...string) string {
	w.t.Helper()
	return run(w.t, w.path, "git", arguments...)
}

func (w writer) write(path, content string) {
	w.t.Helper()
	full := filepath.Join(w.path, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w writer) push(message string) string {
	w.t.Helper()
	w.git("add", "--all")
	w.git("commit", "--quiet", "--message", message)
	w.git("push", "--quiet", "origin", "HEAD:main")
	return strings.TrimSpace(w.git("rev-parse", "HEAD"))
}

func run(t *testing.T, directory, name string, arguments ...string) string {
	t.Helper()
	return runInput(t, directory, "", name, arguments...)
}

func runInput(t *testing.T, directory, input, name string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	command.Dir = directory
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, output)
	}
	return string(output)
}

func load(t *testing.T, remote *gitrepo.Remote, options gitrepo.Options) *gitrepo.Branch {
	t.Helper()
	branch, err := gitrepo.Load(t.Context(), remote, "main", options)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return branch
}

func commitOf(message string, changes ...gitrepo.Change) gitrepo.Commit {
	bot := gitrepo.Signature{Name: "bot", Email: "bot@example.com", When: time.Unix(1700000000, 0).UTC()}
	return gitrepo.Commit{Author: bot, Committer: bot, Message: message, Changes: changes}
}

func set(path, content string) gitrepo.Change {
	return gitrepo.Change{Path: path, Content: []byte(content)}
}

func remove(path string) gitrepo.Change { return gitrepo.Change{Path: path} }

func stage(t *testing.T, branch *gitrepo.Branch, changes ...gitrepo.Change) gitrepo.Hash {
	t.Helper()
	hash, committed, err := branch.Stage(commitOf("change", changes...))
	if err != nil || !committed {
		t.Fatalf("Stage: committed %v, error %v", committed, err)
	}
	return hash
}

func push(t *testing.T, branch *gitrepo.Branch) []gitrepo.Hash {
	t.Helper()
	accepted, err := branch.Push(t.Context())
	if err != nil {
		t.Fatalf("Push: %v", err)
	}
	return accepted
}

func canceledContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
