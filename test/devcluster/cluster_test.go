// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/clustertest"
)

// deadline is more than anything waited for here takes on a busy machine.
const deadline = 2 * time.Minute

// starterVariable makes this test program start a cluster in the folder that it names
// and then wait for its own end.
const starterVariable = "DEVCLUSTER_TEST_START_IN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(starterVariable); dir != "" {
		startAndWait(dir)
	}
	os.Exit(m.Run())
}

// startAndWait starts a cluster, says so, and never returns.
func startAndWait(dir string) {
	if _, err := devcluster.Start(context.Background(), devcluster.Options{Dir: dir}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("started")
	select {}
}

// eventually waits until check succeeds.
func eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, deadline, true,
		func(ctx context.Context) (bool, error) {
			last = check(ctx)
			return last == nil, nil
		})
	if err != nil {
		t.Fatalf("%s: %v (last: %v)", what, err, last)
	}
}

// processesOf returns the command lines of the processes that name the folder.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ps", "-A", "-o", "args").Output()
	if err != nil {
		t.Fatalf("listing processes: %v", err)
	}
	return slices.DeleteFunc(strings.Split(string(out), "\n"), func(line string) bool {
		return !strings.Contains(line, dir+"/")
	})
}

// wantGone checks that neither a process nor a file of the cluster is left.
func wantGone(t *testing.T, dir string) {
	t.Helper()
	if left := processesOf(t, dir); len(left) > 0 {
		t.Errorf("processes are left:\n%s", strings.Join(left, "\n"))
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
}

// push pushes a new commit to a URL, with the cluster's SSH key at hand.
func push(ctx context.Context, cluster *devcluster.Cluster, work, url string) error {
	script := `set -e
git init --quiet --initial-branch=main "$1"
cd "$1"
git -c user.name=a -c user.email=a@example.com commit --quiet --allow-empty --message=first
git push --quiet "$2" main
git ls-remote --exit-code "$2" refs/heads/main`
	command := exec.CommandContext(ctx, "sh", "-c", script, "sh", work, url)
	command.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_SSH_COMMAND=ssh -F none -o BatchMode=yes"+
		" -i "+cluster.Env(devcluster.EnvGitSSHKey)+
		" -o UserKnownHostsFile="+cluster.Env(devcluster.EnvGitSSHKnownHosts))
	out, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("pushing to %s: %w: %s", url, err, out)
	}
	return nil
}

func TestControlPlane(t *testing.T) {
	cluster := clustertest.Start(t, devcluster.Options{})
	admin := cluster.Kubectl(cluster.Admin())

	t.Run("env is what a shell reads", func(t *testing.T) {
		file := filepath.Join(filepath.Dir(cluster.Env(devcluster.EnvDataDir)), "env")
		script := `set -eu; . "$1"; export KUBECONFIG; "$KUBECTL" get namespaces --output=name; test -d "$DATA_DIR"; ` +
			`test -d "$GIT_ROOT"; test -d "$CONTROL_PLANE_LOGS"; test -f "$RECEIVER_LOG"; echo "$RECEIVER_URL"; ` +
			`echo "pids=$SERVER_PIDS;"; echo "$SERVER_URL $GIT_URL $GIT_SSH_URL $SERVER_LOG"`
		out, err := exec.CommandContext(t.Context(), "sh", "-c", script, "sh", file).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, want := range []string{"namespace/kube-system\n", "namespace/" + devcluster.ServerNamespace + "\n", "pids=;"} {
			if !strings.Contains(string(out), want) {
				t.Errorf("want %q in:\n%s", want, out)
			}
		}
	})

	t.Run("an ordinary user may do what RBAC says", func(t *testing.T) { testOrdinaryUser(t, cluster) })

	t.Run("the programs know their version", func(t *testing.T) {
		out, err := admin.Run(t.Context(), "version")
		if err != nil || strings.Contains(out, "v0.0.0") || strings.Count(out, "v1.") != 2 {
			t.Errorf("want the version of client and server, got %v:\n%s", err, out)
		}
	})

	t.Run("controllers work", func(t *testing.T) {
		if _, err := admin.Run(t.Context(), "create", "namespace", "short-lived"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "service account made", func(ctx context.Context) error {
			_, err := admin.Run(ctx, "--namespace=short-lived", "get", "serviceaccount", "default")
			return err
		})
		if _, err := admin.Run(t.Context(), "delete", "namespace", "short-lived", "--timeout="+deadline.String()); err != nil {
			t.Error(err)
		}
		if err := cluster.ControllerManagerHealthy(t.Context()); err != nil {
			t.Error(err)
		}
	})

	t.Run("a push makes a repository", func(t *testing.T) {
		for _, variable := range []string{devcluster.EnvGitURL, devcluster.EnvGitSSHURL} {
			name := strings.ToLower(variable) + ".git"
			if err := push(t.Context(), cluster, t.TempDir(), cluster.Env(variable)+"/"+name); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(cluster.Env(devcluster.EnvGitRoot), name, "HEAD")); err != nil {
				t.Errorf("want a bare repository: %v", err)
			}
		}
	})

	t.Run("another process finds the cluster", func(t *testing.T) {
		loaded, err := devcluster.Load(filepath.Dir(cluster.Env(devcluster.EnvDataDir)))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(loaded.Environ(), cluster.Environ()) {
			t.Errorf("want %v, got %v", cluster.Environ(), loaded.Environ())
		}
	})
}

func testOrdinaryUser(t *testing.T, cluster *devcluster.Cluster) {
	jane, err := cluster.User("jane", "dev")
	if err != nil {
		t.Fatal(err)
	}
	kubectl := cluster.Kubectl(jane)
	if out, err := kubectl.Run(t.Context(), "get", "namespaces"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("want a refusal, got %v: %s", err, out)
	}
	who, err := kubectl.Run(t.Context(), "auth", "whoami", "--output=jsonpath={.status.userInfo.username} {.status.userInfo.groups}")
	if err != nil || who != `jane ["dev","system:authenticated"]` {
		t.Errorf("want jane in dev, got %v: %s", err, who)
	}
	admin := cluster.Kubectl(cluster.Admin())
	if _, err := admin.Run(t.Context(), "create", "clusterrolebinding", "dev", "--clusterrole=view", "--group=dev"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the group's right", func(ctx context.Context) error {
		_, err := kubectl.Run(ctx, "get", "configmaps", "--all-namespaces")
		return err
	})
	other, err := cluster.User("jane")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Kubectl(other).Run(t.Context(), "get", "configmaps"); err == nil {
		t.Error("a user of the same name outside of the group has its rights")
	}
}

func TestTwoClustersSideBySide(t *testing.T) {
	dirs := []string{filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")}
	clusters := make([]*devcluster.Cluster, len(dirs))
	var group errgroup.Group
	for index, dir := range dirs {
		group.Go(func() (err error) {
			clusters[index], err = devcluster.Start(t.Context(), devcluster.Options{Dir: dir})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	a, b := clusters[0].Kubectl(clusters[0].Admin()), clusters[1].Kubectl(clusters[1].Admin())
	if _, err := a.Run(t.Context(), "create", "namespace", "only-here"); err != nil {
		t.Error(err)
	}
	if out, err := b.Run(t.Context(), "get", "namespaces", "--output=name"); err != nil || strings.Contains(out, "only-here") {
		t.Errorf("the second sees the first's namespace: %v: %s", err, out)
	}
	if err := clusters[0].Stop(t.Context()); err != nil {
		t.Errorf("stopping the first: %v", err)
	}
	wantGone(t, dirs[0])
	if _, err := b.Run(t.Context(), "get", "namespaces"); err != nil {
		t.Errorf("the second, after the first was stopped: %v", err)
	}
	if err := clusters[1].Stop(t.Context()); err != nil {
		t.Errorf("stopping the second: %v", err)
	}
	wantGone(t, dirs[1])
}

func TestStopSparesWhatSomebodyElsePutThere(t *testing.T) {
	dir := t.TempDir()
	cluster, err := devcluster.Start(t.Context(), devcluster.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	note := filepath.Join(dir, "note")
	if err := os.WriteFile(note, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "note" {
		t.Errorf("want the note only, got %v and %v", entries, err)
	}
}

// A cluster that is not detached ends with the process that started it, even when that
// one is killed.
func TestClusterEndsWithItsStarter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	starter := exec.CommandContext(t.Context(), os.Args[0])
	starter.Env = append(os.Environ(), starterVariable+"="+dir)
	stdout, err := starter.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := starter.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, len("started"))
	if _, err := stdout.Read(said); err != nil || string(said) != "started" {
		t.Errorf("want it started, got %q and %v", said, err)
	}
	if err := starter.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// Its own error is that it was killed.
	_ = starter.Wait()
	eventually(t, "the cluster's end", func(context.Context) error {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			return fmt.Errorf("the folder is there: %w", err)
		}
		return nil
	})
	eventually(t, "the guard's end", func(context.Context) error {
		if left := processesOf(t, filepath.Dir(dir)); len(left) > 0 {
			return fmt.Errorf("processes are left: %v", left)
		}
		return nil
	})
}

func TestStartRefuses(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "note"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		options devcluster.Options
		want    string
	}{
		"no folder":          {devcluster.Options{}, "needs a folder"},
		"a folder in use":    {devcluster.Options{Dir: full}, "not empty"},
		"an unknown storage": {devcluster.Options{Dir: t.TempDir(), Storage: "paper"}, `storage "paper"`},
		"replicas of a file": {devcluster.Options{Dir: t.TempDir(), Replicas: 2}, "need storage etcd3"},
		"a negative number":  {devcluster.Options{Dir: t.TempDir(), Replicas: -1}, "want 1 or more"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := devcluster.Start(t.Context(), test.options)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("want %q, got %v", test.want, err)
			}
		})
	}
}

// writeScript writes a shell script that stands for a server.
func writeScript(t *testing.T, script string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return program
}

// A part that does not start shows the end of its log, and everything else ends.
func TestFailedStartShowsTheLogAndEndsTheRest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	program := writeScript(t, "echo cannot find my glasses >&2; echo WARNING: DATA RACE >&2; exit 3")
	_, err := devcluster.Start(t.Context(), devcluster.Options{Dir: dir, Server: true, ServerProgram: program})
	if err == nil || !strings.Contains(err.Error(), "cannot find my glasses") || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("want the end of the server's log, got %v", err)
	}
	if left := processesOf(t, dir); len(left) > 0 {
		t.Errorf("processes are left:\n%s", strings.Join(left, "\n"))
	}
	cluster, err := devcluster.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Stop(t.Context()); err == nil || !strings.Contains(err.Error(), "DATA RACE") {
		t.Errorf("want the data race that the server reported, got %v", err)
	}
	wantGone(t, dir)
}
