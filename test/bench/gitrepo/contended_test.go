// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/test/devcluster/gitserver"
)

var minutes = flag.Float64("minutes", 1, "length of each measurement of BenchmarkContended, in minutes")

// rivals is the number of other writers. Each is a process of git after the other, as fast as they run.
const rivals = 2

// rival pushes files to the branch of the repository $1, each attempt on its newest commit, until it is killed. It runs in a clone that
// shares the repository's objects, so that it need not fetch.
const rival = `n=0
while true; do
  n=$((n+1))
  tip=$(git -C "$1" rev-parse main)
  folder=$(printf '100644 blob %s\tfile\n' "$(echo "$2 $n" | git hash-object -w --stdin)" | git mktree)
  tree=$( (git ls-tree $tip clusters; printf '040000 tree %s\ttheirs\n' $folder) | git mktree)
  git push --quiet "$1" "$(git commit-tree -p $tip -m theirs $tree):refs/heads/main"
done >/dev/null 2>&1`

// BenchmarkContended measures how long changes take to a branch to which others push without a pause. A change is due every second; those
// that are due when a push begins are pushed together.
func BenchmarkContended(b *testing.B) {
	for _, transport := range []string{"http", "ssh"} {
		for name, push := range map[string]func(context.Context, *gitrepo.Branch, func()) error{"Refresh": refreshing, "Follow": following} {
			b.Run(transport+"/"+name, func(b *testing.B) {
				for b.Loop() {
					contended(b, transport, push)
				}
				b.ReportMetric(0, "ns/op") // the duration of the measurement is not a result
			})
		}
	}
}

// refreshing pushes what stage stages. When others are faster, it refreshes the branch and begins again, after pauses like those of
// the mirror.
func refreshing(ctx context.Context, branch *gitrepo.Branch, stage func()) error {
	for pause := 10 * time.Millisecond; ; pause = min(pause*3/2, time.Second/2) {
		stage()
		if _, err := branch.Push(ctx); !errors.Is(err, gitrepo.ErrMoved) {
			return err
		}
		<-time.After(pause)
		if err := branch.Refresh(ctx); err != nil {
			return err
		}
	}
}

// following pushes what stage stages, and follows others.
func following(ctx context.Context, branch *gitrepo.Branch, stage func()) error {
	for {
		stage()
		_, err := branch.PushFollowing(ctx, func(context.Context, map[gitrepo.Hash]gitrepo.Hash) error { return nil })
		if !errors.Is(err, gitrepo.ErrMoved) {
			return err
		}
		if err := branch.Refresh(ctx); err != nil {
			return err
		}
	}
}

func contended(b *testing.B, transport string, push func(context.Context, *gitrepo.Branch, func()) error) {
	origin := newOrigin(b, manifests(1000), 0).copy()
	remote := origin.remote(transport)
	branch, err := gitrepo.Load(b.Context(), remote, branchName, gitrepo.Options{ManagedFolders: []string{"clusters/one"}})
	if err != nil {
		b.Fatal(err)
	}
	for i := range rivals {
		origin.rival(strconv.Itoa(i))
	}
	before, began := origin.git("rev-parse", branchName), time.Now()
	var took []time.Duration
	for length := time.Duration(*minutes * float64(time.Minute)); time.Since(began) < length; {
		due := began.Add(time.Duration(len(took)+1) * time.Second)
		<-time.After(time.Until(due))
		now := int(time.Since(began) / time.Second)
		err := push(b.Context(), branch, func() {
			for i := len(took); i < now; i++ {
				stageOne(b, branch, i)
			}
		})
		if err != nil {
			b.Fatal(err)
		}
		for done := time.Now(); len(took) < now; {
			took = append(took, done.Sub(began.Add(time.Duration(len(took)+1)*time.Second)))
		}
	}
	length := time.Since(began).Seconds()
	commits, _ := strconv.Atoi(origin.git("rev-list", "--count", before+".."+branchName))
	slices.Sort(took)
	b.ReportMetric(float64(commits-len(took))/length, "theirs/s")
	b.ReportMetric(took[len(took)/2].Seconds(), "p50-s")
	b.ReportMetric(took[len(took)*99/100].Seconds(), "p99-s")
	b.ReportMetric(took[len(took)-1].Seconds(), "max-s")
}

// stageOne stages the change of one file.
func stageOne(b *testing.B, branch *gitrepo.Branch, number int) {
	b.Helper()
	who := gitrepo.Signature{Name: "bench", Email: "bench@example.com", When: time.Now()}
	changed := changesOf(manifests(1000)[number%1000:][:1], fmt.Sprint("change ", number))[0]
	_, staged, err := branch.Stage(gitrepo.Commit{
		Author: who, Committer: who, Message: "change", Changes: []gitrepo.Change{{Path: changed.path, Content: []byte(changed.content)}},
	})
	if err != nil || !staged {
		b.Fatalf("staged %v, error %v", staged, err)
	}
}

// rival starts another writer, which pushes from a clone on the machine of the server.
func (n native) rival(name string) {
	n.b.Helper()
	clone := native{b: n.b, path: filepath.Join(n.b.TempDir(), "clone.git")}
	n.git("clone", "--quiet", "--bare", "--shared", n.path, clone.path)
	ctx, stop := context.WithCancel(n.b.Context())
	command := exec.CommandContext(ctx, "sh", "-c", rival, "rival", n.path, name)
	command.Dir, command.WaitDelay = clone.path, time.Second
	command.Env = append(environment(), "GIT_AUTHOR_NAME=them", "GIT_AUTHOR_EMAIL=them@example.com",
		"GIT_COMMITTER_NAME=them", "GIT_COMMITTER_EMAIL=them@example.com")
	if err := command.Start(); err != nil {
		n.b.Fatal(err)
	}
	n.b.Cleanup(func() {
		stop()
		_ = command.Wait()
	})
}

// remote serves the repository and returns it as a remote.
func (n native) remote(transport string) *gitrepo.Remote {
	n.b.Helper()
	repositories, err := gitserver.NewRepositories(filepath.Dir(n.path))
	if err != nil {
		n.b.Fatal(err)
	}
	remote := &gitrepo.Remote{}
	n.b.Cleanup(remote.Close)
	if transport == "ssh" {
		n.serveSSH(remote, repositories)
		return remote
	}
	handler, err := repositories.Handler()
	if err != nil {
		n.b.Fatal(err)
	}
	server := httptest.NewServer(handler)
	n.b.Cleanup(server.Close)
	remote.URL = server.URL + "/" + filepath.Base(n.path)
	return remote
}

// serveSSH serves the repositories over SSH, and sets the URL and the credentials of the remote.
func (n native) serveSSH(remote *gitrepo.Remote, repositories *gitserver.Repositories) {
	n.b.Helper()
	hostKey, host := n.key()
	clientKey, client := n.key()
	authorized := filepath.Join(n.b.TempDir(), "authorized")
	if err := os.WriteFile(authorized, ssh.MarshalAuthorizedKey(client), 0o600); err != nil {
		n.b.Fatal(err)
	}
	server, err := gitserver.NewSSH(repositories, hostKey, authorized)
	if err != nil {
		n.b.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(n.b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		n.b.Fatal(err)
	}
	go func() { _ = server.Serve(n.b.Context(), listener) }()
	address := listener.Addr().String()
	remote.URL = "ssh://git@" + address + "/" + filepath.Base(n.path)
	remote.Credentials = gitrepo.Credentials{
		SSHPrivateKey: clientKey, KnownHosts: []byte(knownhosts.Line([]string{address}, host) + "\n"),
	}
}

// key returns a private key file and its public key.
func (n native) key() ([]byte, ssh.PublicKey) {
	n.b.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		n.b.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		n.b.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		n.b.Fatal(err)
	}
	return pem.EncodeToMemory(block), signer.PublicKey()
}
