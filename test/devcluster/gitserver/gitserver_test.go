// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitserver_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"

	"github.com/configbutler/slipstream/test/devcluster/gitserver"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// servers holds the URLs of a Git server and the environment of its client.
type servers struct {
	root    string
	httpURL string
	sshURL  string
	env     []string
}

// start serves an empty folder over both protocols until the test ends.
func start(t *testing.T) servers {
	t.Helper()
	root := t.TempDir()
	repositories, err := gitserver.NewRepositories(root)
	if err != nil {
		t.Fatalf("open the repositories: %v", err)
	}
	handler, err := repositories.Handler()
	if err != nil {
		t.Fatalf("make the handler: %v", err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	keys := t.TempDir()
	hostKey, _ := writeKey(t, keys, "host")
	_, clientLine := writeKey(t, keys, "client")
	authorized := filepath.Join(keys, "authorized")
	writeFile(t, authorized, clientLine)
	return servers{
		root:    root,
		httpURL: server.URL,
		sshURL:  "ssh://git@" + serveSSH(t, repositories, hostKey, authorized),
		env:     append(gitEnv(), sshCommand(filepath.Join(keys, "client"))),
	}
}

// serveSSH serves the repositories over SSH until the test ends.
func serveSSH(t *testing.T, repositories *gitserver.Repositories, hostKey []byte, authorized string) string {
	t.Helper()
	server, err := gitserver.NewSSH(repositories, hostKey, authorized)
	if err != nil {
		t.Fatalf("make the SSH server: %v", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
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
	return listener.Addr().String()
}

// writeKey creates a key, writes it to a file and returns it with its public line.
func writeKey(t *testing.T, folder, name string) (private []byte, publicLine string) {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatalf("make a key: %v", err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatalf("encode a key: %v", err)
	}
	private = pem.EncodeToMemory(block)
	writeFile(t, filepath.Join(folder, name), string(private))
	publicKey, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatalf("encode a public key: %v", err)
	}
	return private, string(ssh.MarshalAuthorizedKey(publicKey))
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatalf("write: %v", err)
	}
}

// gitEnv returns an environment without the machine's own Git settings.
func gitEnv() []string {
	return append(os.Environ(),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	)
}

func sshCommand(key string) string {
	return "GIT_SSH_COMMAND=ssh -F none -i " + key +
		" -o IdentitiesOnly=yes -o BatchMode=yes -o LogLevel=ERROR -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
}

// git runs git in a folder and returns what it prints.
func git(ctx context.Context, env []string, folder string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", arguments...)
	command.Dir, command.Env = folder, env
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("git %s: %w: %s", strings.Join(arguments, " "), err, out)
	}
	return string(out), nil
}

// mustGit runs git, and fails the test on an error.
func mustGit(t *testing.T, env []string, folder string, arguments ...string) string {
	t.Helper()
	out, err := git(t.Context(), env, folder, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// newWork creates a repository with a commit of one file.
func newWork(t *testing.T, content string) string {
	t.Helper()
	folder := t.TempDir()
	mustGit(t, gitEnv(), folder, "init", "--quiet", "--initial-branch=main")
	writeFile(t, filepath.Join(folder, "file"), content)
	mustGit(t, gitEnv(), folder, "add", "file")
	mustGit(t, gitEnv(), folder, "commit", "--quiet", "--message=first")
	return folder
}

// noise returns text that does not compress.
func noise(size int) string {
	content := make([]byte, size)
	_, _ = rand.Read(content)
	return string(content)
}

func TestPushCreatesRepository(t *testing.T) {
	server := start(t)
	for name, test := range map[string]struct{ url, content string }{
		"HTTP":               {server.httpURL + "/plain.git", "content"},
		"HTTPInFolder":       {server.httpURL + "/team/a/deep.git", "content"},
		"HTTPMoreThanBuffer": {server.httpURL + "/large.git", noise(3 << 20)},
		"SSH":                {server.sshURL + "/ssh.git", "content"},
		"SSHLarge":           {server.sshURL + "/team/large-ssh.git", noise(3 << 20)},
	} {
		t.Run(name, func(t *testing.T) {
			mustGit(t, server.env, newWork(t, test.content), "push", "--quiet", test.url, "main")
			clone := filepath.Join(t.TempDir(), "clone")
			mustGit(t, server.env, ".", "clone", "--quiet", test.url, clone)
			got, err := os.ReadFile(filepath.Join(clone, "file"))
			if err != nil || string(got) != test.content {
				t.Errorf("got %d bytes, %v, want the pushed file", len(got), err)
			}
			if branch := mustGit(t, server.env, clone, "branch", "--show-current"); branch != "main\n" {
				t.Errorf("got default branch %q, want main", branch)
			}
		})
	}
}

func TestReadCreatesNoRepository(t *testing.T) {
	server := start(t)
	for _, base := range []string{server.httpURL, server.sshURL} {
		if _, err := git(t.Context(), server.env, ".", "ls-remote", base+"/none.git"); err == nil {
			t.Errorf("%s: got no error for a missing repository", base)
		}
	}
	entries, err := os.ReadDir(server.root)
	if err != nil || len(entries) > 0 {
		t.Errorf("got %v, %v, want an empty folder", entries, err)
	}
}

func TestInvalidRepositoryNames(t *testing.T) {
	server := start(t)
	work := newWork(t, "content")
	for _, path := range []string{"/x", "/.git", "/.hidden/x.git", "/a/..%2f..%2fx.git", "/a/%2e%2e/%2e%2e/x.git", "/-x.git", "/x.git/y"} {
		if _, err := git(t.Context(), server.env, work, "push", server.httpURL+path, "main"); err == nil {
			t.Errorf("HTTP path %s: push succeeded", path)
		}
	}
	for _, path := range []string{"/x", "/../x.git", "/a/../../x.git", "/.git"} {
		if _, err := git(t.Context(), server.env, work, "push", server.sshURL+path, "main"); err == nil {
			t.Errorf("SSH path %s: push succeeded", path)
		}
	}
	if outside, err := filepath.Glob(filepath.Join(filepath.Dir(server.root), "x.git")); err != nil || len(outside) > 0 {
		t.Errorf("repository created outside of the folder: %v %v", outside, err)
	}
}

func TestConcurrentFirstPushes(t *testing.T) {
	server := start(t)
	group, ctx := errgroup.WithContext(t.Context())
	for number := range 4 {
		work := newWork(t, "content")
		group.Go(func() error {
			_, err := git(ctx, server.env, work, "push", server.httpURL+"/shared.git", fmt.Sprintf("main:branch-%d", number))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if refs := mustGit(t, server.env, ".", "ls-remote", "--heads", server.httpURL+"/shared.git"); strings.Count(refs, "branch-") != 4 {
		t.Errorf("want four branches, got:\n%s", refs)
	}
}

func TestPartialAndShallowFetch(t *testing.T) {
	server := start(t)
	work := newWork(t, "content")
	mustGit(t, server.env, work, "push", "--quiet", server.httpURL+"/repo.git", "main")
	for _, base := range []string{server.httpURL, server.sshURL} {
		clone := filepath.Join(t.TempDir(), "clone.git")
		mustGit(t, server.env, ".", "clone", "--quiet", "--bare", "--depth=1", "--filter=blob:none", base+"/repo.git", clone)
		blob := strings.TrimSpace(mustGit(t, server.env, work, "rev-parse", "HEAD:file"))
		missing := mustGit(t, server.env, clone, "rev-list", "--objects", "--missing=print", "HEAD")
		if !strings.Contains(missing, "?"+blob) {
			t.Errorf("%s: got a clone with the blob %s:\n%s", base, blob, missing)
		}
		// An object is fetched by its id.
		if got := mustGit(t, server.env, clone, "cat-file", "blob", blob); got != "content" {
			t.Errorf("%s: got blob %q, want it on demand", base, got)
		}
	}
}

func TestSSHUnauthorizedKey(t *testing.T) {
	server := start(t)
	folder := t.TempDir()
	writeKey(t, folder, "stranger")
	env := append(gitEnv(), sshCommand(filepath.Join(folder, "stranger")))
	if _, err := git(t.Context(), env, newWork(t, "content"), "push", server.sshURL+"/x.git", "main"); err == nil {
		t.Error("push with an unauthorized key succeeded")
	}
}

func TestSSHOtherCommands(t *testing.T) {
	server := start(t)
	options := strings.Fields(strings.TrimPrefix(server.env[len(server.env)-1], "GIT_SSH_COMMAND="))[1:]
	address := strings.TrimPrefix(server.sshURL, "ssh://git@")
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"id", "git-upload-archive '/x.git'", "git-receive-pack '/x.git; id'"} {
		arguments := slices.Concat(options, []string{"-p", port, "git@" + host, line})
		out, err := exec.CommandContext(t.Context(), "ssh", arguments...).CombinedOutput()
		if err == nil || strings.Contains(string(out), "uid=") {
			t.Errorf("%q was run: %s", line, out)
		}
	}
}

// TestConnectionClosedDuringPush does not return if http-backend waits for the rest of the body, since the server waits for it.
func TestConnectionClosedDuringPush(t *testing.T) {
	server := start(t)
	mustGit(t, server.env, newWork(t, "content"), "push", "--quiet", server.httpURL+"/away.git", "main")
	address, _ := strings.CutPrefix(server.httpURL, "http://")
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprint(connection,
		"POST /away.git/git-receive-pack HTTP/1.1\r\nHost: git\r\nContent-Type: application/x-git-receive-pack-request\r\n"+
			"Content-Length: 1000\r\n\r\n0000")
	if err := errors.Join(err, connection.Close()); err != nil {
		t.Fatal(err)
	}
}
