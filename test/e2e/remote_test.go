// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/mirrortest"
)

// burst changes ten ConfigMaps in turn; no object ever gets a value twice.
func (m *mirror) burst(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	for i := range 30 {
		write(t, client, m.Namespace, fmt.Sprintf("c%d", i%10), fmt.Sprintf("%s-%d", name, i))
	}
}

// wounded makes a mirror with other people's files, on which faults are tried out.
func (s *stage) wounded(t *testing.T, namespace string) (*mirror, kubernetes.Interface) {
	t.Helper()
	m, client := s.newMirror(t, namespace, "granularity: PerChange"), mirrortest.Client(t, s.Admin())
	m.Watch(t, "config", "configmaps")
	m.burst(t, client, "before")
	m.equal(t, client)
	m.addTheirs(t)
	return m, client
}

// healed fails unless Git equals the cluster, and nothing of others was lost or written twice.
func (m *mirror) healed(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	m.burst(t, client, "after")
	m.equal(t, client)
	m.Settled(t)
	m.Ready(t, "-n", m.Namespace, "gitrepoconfig/main", "gitdestination/main")
	m.unharmed(t)
}

// door puts a door in front of the cluster's Git server.
func (s *stage) door(t *testing.T, admits func(http.ResponseWriter, *http.Request) bool) (address string) {
	t.Helper()
	target, err := url.Parse(s.Env(devcluster.EnvGitURL))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if admits(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// locked puts a door in front of the cluster's Git server that wants a password.
func (s *stage) locked(t *testing.T) (address string, password *atomic.Value) {
	t.Helper()
	password = &atomic.Value{}
	return s.door(t, func(w http.ResponseWriter, r *http.Request) bool {
		if _, got, _ := r.BasicAuth(); got == password.Load() {
			return true
		}
		w.Header().Set("WWW-Authenticate", "Basic")
		http.Error(w, "who are you? "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		return false
	}), password
}

// outage is how long the remote stays down after the last change.
var outage = flag.Duration("outage", 0, "how long the remote stays down after the last change")

// remoteDown has a Git server that goes away in the middle of 5000 changes and is back when nothing changes any more.
func remoteDown(t *testing.T, s *stage) {
	m, client := s.wounded(t, "down")
	var down atomic.Bool
	address := s.door(t, func(http.ResponseWriter, *http.Request) bool {
		if down.Load() {
			panic(http.ErrAbortHandler) // breaks the connection off
		}
		return true
	})
	s.Run(t, "patch", "grc", "main", "-n", "down", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"repoUrl":"%s/down.git"}}`, address))
	s.Run(t, "patch", "gitdestination", "main", "-n", "down", "--type=merge", "-p", `{"spec":{"granularity":"PerAuthor"}}`)
	m.burst(t, client, "moved")
	m.equal(t, client)
	const changes = 5000
	for i := range changes {
		if i == changes/10 {
			down.Store(true)
		}
		write(t, client, "down", fmt.Sprintf("c%03d", i%250), fmt.Sprintf("burst-%d", i))
	}
	s.condition(t, "down", "gitdestination/main", "Ready", "RepositoryUnreachable")
	<-time.After(*outage)
	pending := s.Run(t, "get", "gds", "main", "-n", "down", "-o", "jsonpath={.status.pendingChanges}")
	if n, err := strconv.Atoi(pending); err != nil || n < changes/2 {
		t.Errorf("%q changes wait", pending)
	}
	down.Store(false)
	m.equal(t, client) // with no event after
	m.healed(t, client)
}

// busyBranch has somebody else push to the branch all the time.
func busyBranch(t *testing.T, s *stage) {
	m, client := s.wounded(t, "busy")
	landed, stop := m.keepPushing(t)
	for i := range 5 {
		m.burst(t, client, fmt.Sprint("beside ", i))
	}
	m.equal(t, client)
	mirrortest.Eventually(t, "others have had their turn", func(context.Context) error {
		if n := landed.Load(); n < 5 {
			return fmt.Errorf("%d of their pushes have landed", n)
		}
		return nil
	})
	m.burst(t, client, "again")
	m.equal(t, client) // while they go on
	stop()
	theirs := landed.Load()
	if count, err := m.Git(t.Context(), "rev-list", "--count", "main", "--", "counter"); err != nil || strings.TrimSpace(count) != fmt.Sprint(theirs) {
		t.Errorf("%s of their %d commits are there: %v", count, theirs, err)
	}
	m.healed(t, client)
}

// theirPause is how many times as long as one of their pushes somebody else takes from one to the next, whatever the
// machine. Of two who push one right after the other the one whose fetch and push take longer may lose every time: what
// is ours waits then, until the other stops.
const theirPause = 5

// keepPushing lets somebody else push one commit after the other with git, until stop, and counts those that landed.
func (m *mirror) keepPushing(t *testing.T) (landed *atomic.Int64, stop func()) {
	t.Helper()
	clone, address := t.TempDir(), m.Env(devcluster.EnvGitURL)+"/"+m.Namespace+".git"
	prepare := fmt.Sprintf("git clone -q -b main %s %s; cd %[2]s; git config user.name Jane; git config user.email jane@example.com", address, clone)
	if out, err := shell(t.Context(), prepare); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	landed = &atomic.Int64{}
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			script := fmt.Sprintf(`set -e; cd %s; git fetch -q; git reset -q --hard origin/main
echo %d > counter; git add counter; git commit -qm theirs; git push -q origin HEAD:main`, clone, landed.Load())
			// One that has begun is not cut off: nobody would know whether it landed.
			if _, err := shell(t.Context(), script); err == nil {
				landed.Add(1)
			}
			select {
			case <-time.After(theirPause * time.Since(began)):
			case <-ctx.Done():
			}
		}
	})
	return landed, func() {
		cancel()
		group.Wait()
	}
}

// rotatedCredentials has a Secret that is replaced by a wrong one and then by the right one.
func rotatedCredentials(t *testing.T, s *stage) {
	m, client := s.wounded(t, "rotated")
	address, password := s.locked(t)
	password.Store("pa55-first")
	secret := func(value string) {
		t.Helper()
		s.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: git, namespace: rotated}\nstringData: {username: bot, password: %s}\n", value))
	}
	secret("pa55-first")
	s.Run(t, "patch", "grc", "main", "-n", "rotated", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"repoUrl":"%s/rotated.git","secretRef":{"name":"git"}}}`, address))
	m.burst(t, client, "locked")
	m.equal(t, client)

	secret("pa55-wrong")
	password.Store("pa55-second")
	m.burst(t, client, "refused")
	for _, object := range []string{"gitrepoconfig/main", "gitdestination/main"} {
		if why := s.condition(t, "rotated", object, "Ready", "AuthenticationFailed"); strings.Contains(why, "pa55") || strings.Contains(why, "Ym90OnBhNTU") {
			t.Errorf("%s tells the credentials: %s", object, why)
		}
	}
	for _, object := range []string{"GitRepoConfig/main", "GitDestination/main"} {
		if said := s.event(t, "rotated", object, "Warning", "AuthenticationFailed"); strings.Contains(said, "pa55") || strings.Contains(said, "Ym90OnBhNTU") {
			t.Errorf("an Event about %s tells the credentials: %s", object, said)
		}
	}
	if pending := s.Run(t, "get", "gds", "main", "-n", "rotated", "-o", "jsonpath={.status.pendingChanges}"); pending == "" || pending == "0" {
		t.Errorf("%q changes wait", pending)
	}
	secret("pa55-second")
	m.healed(t, client)
}

// rewrittenHistory has somebody force-push other history, with everybody's files and then without ours.
func rewrittenHistory(t *testing.T, s *stage) {
	m, client := s.wounded(t, "rewritten")
	rewrite := func(script string) {
		t.Helper()
		script = fmt.Sprintf(`set -e; clone=$(mktemp -d); trap "rm -rf $clone" EXIT; git clone -q %s/rewritten.git $clone; cd $clone
git config user.name Jane; git config user.email jane@example.com; git checkout -q --orphan anew; %s; git add -A; git commit -qm Anew; git push -q --force origin anew:main`,
			s.Env(devcluster.EnvGitURL), script)
		if out, err := shell(t.Context(), script); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for name, script := range map[string]string{"squashed": "true", "emptied": "git rm -rqf " + m.Folder + "/core"} {
		rewrite(script)
		root, err := m.Git(t.Context(), "rev-list", "--max-parents=0", "main")
		if err != nil {
			t.Fatal(err)
		}
		m.burst(t, client, name)
		m.equal(t, client)
		if kept, err := m.Git(t.Context(), "rev-list", "--max-parents=0", "main"); err != nil || kept != root {
			t.Errorf("%s: somebody's push was undone: the branch begins with %s instead of %s (%v)", name, kept, root, err)
		}
	}
	m.healed(t, client)
}

// fullQuota has a Git server that takes no object any more, as one does whose disk or quota is full.
func fullQuota(t *testing.T, s *stage) {
	m, client := s.wounded(t, "quota")
	if _, err := m.Git(t.Context(), "config", "receive.maxInputSize", "1"); err != nil {
		t.Fatal(err)
	}
	m.burst(t, client, "full")
	s.condition(t, "quota", "gitdestination/main", "Ready", "PushRejected")
	if _, err := m.Git(t.Context(), "config", "--unset", "receive.maxInputSize"); err != nil {
		t.Fatal(err)
	}
	m.healed(t, client)
}
