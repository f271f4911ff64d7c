// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// TestForbidden tests what errors say of requests that the server forbids, when the repository is checked and when a branch is pushed: as
// read-only tokens, tokens without permissions and repositories that do not exist are on real servers.
func TestForbidden(t *testing.T) {
	for name, test := range map[string]struct {
		// reading is the status of requests to read; 200 serves the repository.
		reading int
		want    gitrepo.Kind
		message string
	}{
		"read-only":      {200, gitrepo.Unauthorized, "the credentials may read the repository, but not write to it: 403 Forbidden: no"},
		"no permission":  {403, gitrepo.Unauthorized, "the credentials may neither read the repository nor write to it: 403 Forbidden: no"},
		"does not exist": {404, gitrepo.NotFound, "the server knows no such repository: 404 Not Found: no"},
		"overloaded":     {503, gitrepo.Unauthorized, "the server refuses the credentials: 403 Forbidden: no"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			var forbids atomic.Bool
			url := r.serve(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
					writes := strings.Contains(request.URL.String(), "git-receive-pack")
					switch {
					case forbids.Load() && writes:
						http.Error(response, "no", http.StatusForbidden)
					case forbids.Load() && test.reading != http.StatusOK:
						http.Error(response, "no", test.reading)
					default:
						next.ServeHTTP(response, request)
					}
				})
			})
			branch := load(t, newRemote(t, url), gitrepo.Options{})
			stage(t, branch, set("a", "a"))
			forbids.Store(true)
			_, pushing := branch.Push(t.Context())
			for operation, err := range map[string]error{
				"push": pushing, "check the repository": newRemote(t, url).Check(t.Context()),
			} {
				hasKind(t, err, test.want)
				if want := "cannot " + operation + ": " + test.message; err == nil || err.Error() != want {
					t.Errorf("error %v, want %s", err, want)
				}
			}
		})
	}
}

// TestSSHMessages tests how the messages are classified with which a server refuses repositories over SSH.
func TestSSHMessages(t *testing.T) {
	key, public := clientKey(t, "")
	server := newSSHServer(t, public)
	remote := newRemote(t, server.url("/repository"))
	remote.Credentials = gitrepo.Credentials{SSHPrivateKey: key, KnownHosts: server.knownHosts()}
	for text, want := range map[string]gitrepo.Kind{
		"error: \nerror: Cannot find repository: shop/web\nerror: \n":                        gitrepo.NotFound,
		"error: \nerror: Push to create is not enabled for organizations.\nerror: \n":        gitrepo.NotFound,
		"error: \nerror: Deploy Key: 2:reader is not authorized to write to a/b.\nerror: \n": gitrepo.Unauthorized,
	} {
		respond := func(_ *ssh.ServerConn, channel ssh.Channel) {
			_, _ = channel.Stderr().Write([]byte(text))
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{1}))
			_ = channel.Close()
		}
		server.respond.Store(&respond)
		err := sshRemote(t, remote, server.url("/repository")).Check(t.Context())
		hasKind(t, err, want)
		if says := "the server says: " + strings.Split(text, "\n")[1]; err == nil || !strings.HasSuffix(err.Error(), says) {
			t.Errorf("error %q does not end with %q", err, says)
		}
	}
}
