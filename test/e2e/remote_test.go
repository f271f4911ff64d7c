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
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// burst changes ten ConfigMaps in turn. Each written value is unique.
func (m *mirror) burst(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	for i := range 30 {
		write(t, client, m.Namespace, fmt.Sprintf("c%d", i%10), fmt.Sprintf("%s-%d", name, i))
	}
}

// newFaultMirror creates a mirror in a repository with files of other users, for tests of faults.
func (s *testCluster) newFaultMirror(t *testing.T, namespace string) (*mirror, kubernetes.Interface) {
	t.Helper()
	m, client := s.newMirror(t, namespace, "granularity: PerChange"), mirrortest.Client(t, s.Admin())
	m.Watch(t, "config", "configmaps")
	m.burst(t, client, "before")
	m.Equal(t, client)
	m.addTheirs(t)
	return m, client
}

// checkRecovered fails unless Git equals the cluster, and no file of another user was lost and no change written twice.
func (m *mirror) checkRecovered(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	m.burst(t, client, "after")
	m.Equal(t, client)
	m.Settled(t)
	m.Ready(t, m.Namespace, "gitrepoconfig/main", "gitdestination/main")
	m.unharmed(t)
}

// gitProxy starts a proxy for the cluster's Git server that forwards the requests that admits accepts.
func (s *testCluster) gitProxy(t *testing.T, admits func(http.ResponseWriter, *http.Request) bool) (address string) {
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

// passwordProxy starts a proxy for the cluster's Git server that requires a password.
func (s *testCluster) passwordProxy(t *testing.T) (address string, password *atomic.Value) {
	t.Helper()
	password = &atomic.Value{}
	return s.gitProxy(t, func(w http.ResponseWriter, r *http.Request) bool {
		if _, got, _ := r.BasicAuth(); got == password.Load() {
			return true
		}
		w.Header().Set("WWW-Authenticate", "Basic")
		http.Error(w, "unauthorized: "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		return false
	}), password
}

// outage is how long the remote remains unreachable after the last change.
var outage = flag.Duration("outage", 0, "how long the remote remains unreachable after the last change")

// remoteDown makes the Git server unreachable during 5000 changes, and reachable again after the last one.
func remoteDown(t *testing.T, s *testCluster) {
	m, client := s.newFaultMirror(t, "down")
	var down atomic.Bool
	address := s.gitProxy(t, func(http.ResponseWriter, *http.Request) bool {
		if down.Load() {
			panic(http.ErrAbortHandler) // aborts the connection
		}
		return true
	})
	s.Patch(t, "down", "grc/main", fmt.Sprintf(`{"spec":{"repoUrl":"%s/down.git"}}`, address))
	s.Patch(t, "down", "gitdestination/main", `{"spec":{"granularity":"PerAuthor"}}`)
	m.burst(t, client, "moved")
	m.Equal(t, client)
	const changes, objects = 5000, 250
	for i := range changes {
		if i == changes/10 {
			down.Store(true)
		}
		write(t, client, "down", fmt.Sprintf("c%03d", i%objects), fmt.Sprintf("burst-%d", i))
	}
	s.Condition(t, "down", "gitdestination/main", "Ready", "RepositoryUnreachable")
	<-time.After(*outage)
	// A watch that ended under load leaves at least the last change of each object.
	m.waitForPending(t, objects)
	down.Store(false)
	m.EqualWithin(t, client, longOutage) // without a later event
	m.checkRecovered(t, client)
}

// longOutage is how long the mirror may take to write to a remote that is reachable again: after a failure it waits twice as long as after
// the last one, five minutes at most.
const longOutage = 10 * time.Minute

// waitForPending waits until at least n changes are pending.
func (m *mirror) waitForPending(t *testing.T, n int) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("%d changes are pending", n), func(ctx context.Context) error {
		pending, err := m.Try.Field(ctx, m.Namespace, "gds/main", "{.status.pendingChanges}")
		if err != nil {
			return err
		}
		if found, err := strconv.Atoi(pending); err != nil || found < n {
			return fmt.Errorf("pendingChanges = %q", pending)
		}
		return nil
	})
}

// busyBranch has another writer push to the branch continuously.
func busyBranch(t *testing.T, s *testCluster) {
	m, client := s.newFaultMirror(t, "busy")
	accepted, stop := m.keepPushing(t)
	for i := range 5 {
		m.burst(t, client, fmt.Sprint("beside ", i))
	}
	m.Equal(t, client)
	mirrortest.Eventually(t, "the other writer has pushed", func(context.Context) error {
		if n := accepted.Load(); n < 5 {
			return fmt.Errorf("%d pushes of the other writer were accepted", n)
		}
		return nil
	})
	m.burst(t, client, "again")
	m.Equal(t, client) // while the other writer continues
	stop()
	theirs := accepted.Load()
	// A push that failed for the writer may have been accepted nevertheless.
	if out, err := m.Git(t.Context(), "rev-list", "--count", "main", "--", "counter"); err != nil {
		t.Error(err)
	} else if count, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64); err != nil || count < theirs {
		t.Errorf("%s of %d commits of the other writer are in the branch: %v", out, theirs, err)
	}
	m.checkRecovered(t, client)
}

// theirPause is the pause of the other writer, as a multiple of the duration of its push. A writer that pushes without a pause
// may win every race against one whose fetch and push take longer: our changes would then wait until it stops.
const theirPause = 5

// keepPushing has another writer push commits with git until stop is called, and counts the accepted pushes.
func (m *mirror) keepPushing(t *testing.T) (accepted *atomic.Int64, stop func()) {
	t.Helper()
	clone, address := t.TempDir(), m.Env(devcluster.EnvGitURL)+"/"+m.Namespace+".git"
	prepare := fmt.Sprintf("git clone -q -b main %s %s; cd %[2]s; git config user.name Jane; git config user.email jane@example.com",
		address, clone)
	if out, err := shell(t.Context(), prepare); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	accepted = &atomic.Int64{}
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			start := time.Now()
			script := fmt.Sprintf(`set -e; cd %s; git fetch -q; git reset -q --hard origin/main
echo %d > counter; git add counter; git commit --allow-empty -qm theirs; git push -q origin HEAD:main`, clone, accepted.Load())
			// A started push is not interrupted, because its outcome would be unknown.
			if _, err := shell(t.Context(), script); err == nil {
				accepted.Add(1)
			}
			select {
			case <-time.After(theirPause * time.Since(start)):
			case <-ctx.Done():
			}
		}
	})
	return accepted, func() {
		cancel()
		group.Wait()
	}
}

// rotatedCredentials replaces a Secret by a wrong one and then by the right one.
func rotatedCredentials(t *testing.T, s *testCluster) {
	m, client := s.newFaultMirror(t, "rotated")
	address, password := s.passwordProxy(t)
	password.Store("pa55-first")
	secret := func(value string) {
		t.Helper()
		s.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: git, namespace: rotated}\nstringData: {username: bot, "+
			"password: %s}\n", value))
	}
	secret("pa55-first")
	s.Patch(t, "rotated", "grc/main", fmt.Sprintf(`{"spec":{"repoUrl":"%s/rotated.git","secretRef":{"name":"git"}}}`, address))
	m.burst(t, client, "locked")
	m.Equal(t, client)

	secret("pa55-wrong")
	password.Store("pa55-second")
	m.burst(t, client, "refused")
	for _, object := range []string{"gitrepoconfig/main", "gitdestination/main"} {
		if why := s.Condition(t, "rotated", object, "Ready", "AuthenticationFailed"); strings.Contains(why, "pa55") ||
			strings.Contains(why, "Ym90OnBhNTU") {
			t.Errorf("condition of %s contains the credentials: %s", object, why)
		}
	}
	for _, object := range []string{"GitRepoConfig/main", "GitDestination/main"} {
		if message := s.event(t, "rotated", object, "Warning", "AuthenticationFailed"); strings.Contains(message, "pa55") ||
			strings.Contains(message, "Ym90OnBhNTU") {
			t.Errorf("Event about %s contains the credentials: %s", object, message)
		}
	}
	m.waitForPending(t, 1)
	secret("pa55-second")
	m.checkRecovered(t, client)
}

// rewrittenHistory has another writer force-push a rewritten history, first with all files and then without the mirrored ones.
func rewrittenHistory(t *testing.T, s *testCluster) {
	m, client := s.newFaultMirror(t, "rewritten")
	rewrite := func(script string) {
		t.Helper()
		script = fmt.Sprintf(`set -e; clone=$(mktemp -d); trap "rm -rf $clone" EXIT; git clone -q %s/rewritten.git $clone; cd $clone
git config user.name Jane; git config user.email jane@example.com; git checkout -q --orphan rewritten; %s
git add -A; git commit -qm Rewritten; git push -q --force origin rewritten:main`,
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
		m.Equal(t, client)
		if kept, err := m.Git(t.Context(), "rev-list", "--max-parents=0", "main"); err != nil || kept != root {
			t.Errorf("%s: the force-push was undone: root commit %s, want %s (%v)", name, kept, root, err)
		}
	}
	m.checkRecovered(t, client)
}

// fullQuota tests a Git server that accepts no more objects, because its disk or quota is full.
func fullQuota(t *testing.T, s *testCluster) {
	m, client := s.newFaultMirror(t, "quota")
	if _, err := m.Git(t.Context(), "config", "receive.maxInputSize", "1"); err != nil {
		t.Fatal(err)
	}
	m.burst(t, client, "full")
	s.Condition(t, "quota", "gitdestination/main", "Ready", "PushRejected")
	if _, err := m.Git(t.Context(), "config", "--unset", "receive.maxInputSize"); err != nil {
		t.Fatal(err)
	}
	m.checkRecovered(t, client)
}
