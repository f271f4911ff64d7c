// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// write creates or updates a ConfigMap with a single value.
func write(t *testing.T, client kubernetes.Interface, namespace, name, value string) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Data: map[string]string{"value": value}}
	_, err := client.CoreV1().ConfigMaps(namespace).Update(t.Context(), object, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.CoreV1().ConfigMaps(namespace).Create(t.Context(), object, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// withoutChange returns the commits with the same tree as their parent.
func (m *mirror) withoutChange(t *testing.T) []string {
	t.Helper()
	out, err := m.Git(t.Context(), "log", "--format=%H %T %P", "main")
	if err != nil {
		t.Fatal(err)
	}
	var empty []string
	trees := map[string]string{}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range lines {
		fields := strings.Fields(line)
		trees[fields[0]] = fields[1]
	}
	for _, line := range lines {
		if fields := strings.Fields(line); len(fields) > 2 && trees[fields[2]] == fields[1] {
			empty = append(empty, fields[0])
		}
	}
	return empty
}

func TestRestart(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t, devcluster.Options{})
	client := mirrortest.Client(t, s.Admin())
	m := s.newMirror(t, "restart")
	const many = 600
	for i := range many {
		write(t, client, "restart", fmt.Sprintf("c%03d", i), "x")
	}
	write(t, client, "restart", "kept", "x")
	m.Watch(t, "config", "configmaps")
	m.Equal(t, client)
	m.Settled(t)

	// Nothing has changed, so the comparison after a restart commits nothing.
	before, last := m.Commits(t), m.lastCommit(t)
	m.restart(t, syscall.SIGTERM)
	m.Ready(t, "restart", "watchrule/config")
	m.Settled(t)
	if got := m.lastCommit(t); got != last || got == "" {
		t.Errorf("the last commit is %q after a restart, %q before", got, last)
	}
	if after := m.Commits(t); after != before {
		log, _ := m.Git(t.Context(), "log", "--stat", "-3", "main")
		t.Errorf("%s commits after a restart, %s before:\n%s", after, before, log)
	}

	// Objects deleted while the server was stopped are removed in one commit.
	if err := s.StopServer(t.Context(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for i := range many {
		if err := client.CoreV1().ConfigMaps("restart").Delete(t.Context(), fmt.Sprintf("c%03d", i), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.Equal(t, client)
	if subject, err := m.Git(t.Context(), "log", "-1", "--format=%s", "main"); err != nil || subject != "[SEED] 600 objects: 600 deleted\n" {
		t.Errorf("commit of the orphans: %q, %v", subject, err)
	}
	// The status is that of the previous process until this one has reported.
	mirrortest.Eventually(t, "the orphans are counted", func(ctx context.Context) error {
		removed, err := s.Try.Field(ctx, "restart", "gds/main", "{.status.orphansRemoved}")
		if err == nil && removed != "600" {
			err = fmt.Errorf("orphansRemoved: %s", removed)
		}
		return err
	})
	m.Intact(t)
}

// lastCommit returns the last commit in the status of the destination.
func (m *mirror) lastCommit(t *testing.T) string {
	t.Helper()
	return m.Field(t, m.Namespace, "gds/main", "{.status.lastCommit.sha}")
}

// restart stops the server with a signal and starts it with the same data.
func (m *mirror) restart(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := m.StopServer(t.Context(), signal); err != nil {
		t.Fatal(err)
	}
	if err := m.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// kills is how many times TestKilledInMidBurst kills the server, burst how many changes it makes around each.
var (
	kills    = flag.Int("kills", 3, "how many times the server is killed at a random moment")
	ofABurst = flag.Int("burst", 200, "how many changes are made around each of the kills")
)

// burstUsers is the number of users who make the changes.
const burstUsers = 10

// TestKilledInMidBurst has ten users change objects while the server is killed again and again. Each change must be in Git once, with
// one Change that names the commit, the contents and, if any, the right author.
func TestKilledInMidBurst(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t, devcluster.Options{Admission: true}) // Changes wait for audit events, and few would be in the outbox at a death.
	client := mirrortest.Client(t, s.Admin())
	var users []kubernetes.Interface
	for i := range burstUsers {
		users = append(users, mirrortest.ClientOf(t, s.Admin(), func(config *rest.Config) (kubernetes.Interface, error) {
			config.Impersonate = rest.ImpersonationConfig{UserName: fmt.Sprintf("user-%d", i), Groups: []string{user.SystemPrivilegedGroup}}
			return kubernetes.NewForConfig(config)
		}))
	}
	m := s.newMirror(t, "burst", "granularity: PerChange")
	m.Watch(t, "config", "configmaps")
	write(t, client, "burst", "first", "first")
	m.Equal(t, client)
	m.addTheirs(t)
	for round := range *kills {
		killed, begun, done := rand.IntN(*ofABurst), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for i := range *ofABurst {
				if i == killed {
					close(begun)
				}
				by := (i + i/20) % burstUsers // Each object is changed by all users in turn.
				write(t, users[by], "burst", fmt.Sprintf("c%02d", i%20), fmt.Sprintf("user-%d: %d-%d", by, round, i))
			}
		}()
		<-begun
		m.restart(t, syscall.SIGKILL)
		<-done
		m.Equal(t, client)
	}
	m.unharmed(t)
	m.ChangesAgree(t)
	m.authorsAgree(t)
	t.Logf("%d kills, %d changes written, %d values in the history, %s commits", *kills, *kills**ofABurst+1, len(m.values(t)), m.Commits(t))
}

// authorsAgree checks that the author of each Change, and of its commit, is the user whom the value names, if an author is known. Unknown are
// those of what a comparison after a death has found, and of changes whose review kube-apiserver gave up after two seconds: many on a busy
// machine.
func (m *mirror) authorsAgree(t *testing.T) {
	t.Helper()
	out, err := m.Git(t.Context(), "log", "-p", "--unified=0", "--format=commit %H %an",
		"--invert-grep", "--fixed-strings", "--grep=[SEED]", "main", "--", m.Folder+"/core/v1/configmaps")
	if err != nil {
		t.Fatal(err)
	}
	users, authors := map[string]string{}, map[string]string{}
	commit := ""
	for line := range strings.Lines(out) {
		if header, ok := strings.CutPrefix(line, "commit "); ok {
			hash, author, _ := strings.Cut(strings.TrimSpace(header), " ")
			commit, authors[hash] = hash, author
		}
		if value, ok := strings.CutPrefix(line, `+  value: "user-`); ok {
			number, _, _ := strings.Cut(value, ":")
			users[commit] = "user-" + number
		}
	}
	changes, err := mirrortest.ClientOf(t, m.Admin(), versioned.NewForConfig).ConfigbutlerV1alpha1().Changes(m.Namespace).
		List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	for _, change := range changes.Items {
		sha := change.Spec.Commits[0].SHA
		want, author := users[sha], change.Spec.Author
		switch {
		case author == nil || want == "":
		case author.Username != want || authors[sha] != want:
			t.Errorf("commit %s of a change by %s has the author %s, its Change %s", sha, want, authors[sha], author.Username)
		default:
			known++
		}
	}
	t.Logf("the authors of %d of %d changes are known", known, len(users))
	if known < len(users)/10 {
		t.Error("these are too few")
	}
}

// TestKilledAtEachStep kills the server at every failpoint of the mirror and restarts it. Each change must be in Git exactly
// once.
func TestKilledAtEachStep(t *testing.T) {
	t.Parallel()
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	built, err := programs.ProductWithFailpoints(t.Context(), root, "cmd/slipstream")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program, armed := filepath.Join(dir, "slipstream"), filepath.Join(dir, "armed")
	// A starting server reads its failpoint from a file and empties the file for the next start.
	script := fmt.Sprintf("#!/bin/sh\nexport SLIPSTREAM_FAILPOINTS=\"$(cat %[1]s)\"\n: > %[1]s\nexec %[2]s \"$@\"\n", armed, built)
	writeFile(t, program, script)
	writeFile(t, armed, "")
	s := newTestCluster(t, devcluster.Options{ServerProgram: program})
	client := mirrortest.Client(t, s.Admin())
	for i, step := range []string{"outbox-written", "commits-staged", "push-noted", "pushed", "rows-removed"} {
		t.Run(step, func(t *testing.T) {
			m := s.newMirror(t, fmt.Sprintf("step%d", i), "granularity: PerChange")
			m.Watch(t, "config", "configmaps")
			m.Settled(t)
			writeFile(t, armed, step+"=kill@4")
			m.restart(t, syscall.SIGTERM)
			m.Ready(t, m.Namespace, "watchrule/config")
			deaths, want := 0, []string{}
			for n := range 12 {
				value := fmt.Sprint(n)
				want = append(want, value)
				write(t, client, m.Namespace, fmt.Sprintf("c%d", n%3), value)
				deaths += m.waitForValue(t, m.ConfigMapPath(fmt.Sprintf("c%d", n%3)), value)
			}
			if deaths != 1 {
				t.Errorf("server died %d times, want 1", deaths)
			}
			m.Equal(t, client)
			if got := m.values(t); !slices.Equal(got, want) {
				t.Errorf("values in the history = %v, want each of %v once", got, want)
			}
			m.ChangesAgree(t)
		})
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
}

// waitForValue waits until a file has a value, and restarts the server when it has died. It returns the number of restarts.
func (m *mirror) waitForValue(t *testing.T, path, value string) (deaths int) {
	t.Helper()
	down := false
	mirrortest.Eventually(t, fmt.Sprintf("%s has the value %s", path, value), func(ctx context.Context) error {
		if !m.isServing(ctx) {
			if !down { // A start that takes too long is repeated.
				deaths++
			}
			down = true
			if err := m.StartServer(ctx); err != nil {
				return err
			}
		}
		down = false
		content, err := m.Git(ctx, "show", "main:"+m.Folder+"/"+path)
		if err == nil && !strings.Contains(content, fmt.Sprintf("value: %q\n", value)) {
			err = fmt.Errorf("content:\n%s", content)
		}
		return err
	})
	return deaths
}

// isServing reports whether the server's port is open.
func (m *mirror) isServing(ctx context.Context) bool {
	address := strings.TrimPrefix(m.Env(devcluster.EnvServerURL), "https://")
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}

// values returns the values in the commits of the branch, oldest first.
func (m *mirror) values(t *testing.T) []string {
	t.Helper()
	out, err := m.Git(t.Context(), "log", "--reverse", "-p", "--unified=0", "--format=", "main", "--", m.Folder+"/core/v1/configmaps")
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, line := range strings.Split(out, "\n") {
		if value, ok := strings.CutPrefix(line, "+  value: "); ok {
			values = append(values, strings.Trim(value, `"`))
		}
	}
	return values
}
