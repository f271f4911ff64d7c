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

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
)

// deadline exceeds the duration of every condition on a busy machine.
const deadline = 2 * time.Minute

// starterVariable makes this test program start a cluster in the folder of its value
// and then block.
const starterVariable = "DEVCLUSTER_TEST_START_IN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(starterVariable); dir != "" {
		startAndWait(dir)
	}
	os.Exit(m.Run())
}

// startAndWait starts a cluster, prints that it has started, and never returns.
func startAndWait(dir string) {
	if _, err := devcluster.Start(context.Background(), devcluster.Options{Dir: dir}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("started")
	select {}
}

// processesOf returns the command lines of the processes that contain the folder.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ps", "-A", "-o", "args").Output()
	if err != nil {
		t.Fatalf("list processes: %v", err)
	}
	return slices.DeleteFunc(strings.Split(string(out), "\n"), func(line string) bool {
		return !strings.Contains(line, dir+"/")
	})
}

// checkStopped checks that no process and no file of the cluster remains.
func checkStopped(t *testing.T, dir string) {
	t.Helper()
	if left := processesOf(t, dir); len(left) > 0 {
		t.Errorf("processes still running:\n%s", strings.Join(left, "\n"))
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("folder still exists: %v", err)
	}
}

// push pushes a new commit to a URL, with the cluster's SSH key.
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
		return fmt.Errorf("failed to push to %s: %w: %s", url, err, out)
	}
	return nil
}

func TestControlPlane(t *testing.T) {
	cluster := clustertest.Start(t, devcluster.Options{})
	admin := cluster.Kubectl(cluster.Admin())

	t.Run("EnvFile", func(t *testing.T) {
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
				t.Errorf("%q not in:\n%s", want, out)
			}
		}
	})

	t.Run("UserWithRBAC", func(t *testing.T) { testOrdinaryUser(t, cluster) })

	t.Run("Versions", func(t *testing.T) {
		out, err := admin.Run(t.Context(), "version")
		version := fmt.Sprintf("v1.%d.", cluster.KubernetesMinor())
		if err != nil || strings.Count(out, version) != 2 {
			t.Errorf("client or server is not of version %s: %v:\n%s", version, err, out)
		}
	})

	t.Run("Controllers", func(t *testing.T) {
		if _, err := admin.Run(t.Context(), "create", "namespace", "short-lived"); err != nil {
			t.Fatal(err)
		}
		testkit.EventuallyWithin(t, deadline, "the default service account", func(ctx context.Context) error {
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

	t.Run("PushCreatesRepository", func(t *testing.T) {
		for _, variable := range []string{devcluster.EnvGitURL, devcluster.EnvGitSSHURL} {
			name := strings.ToLower(variable) + ".git"
			if err := push(t.Context(), cluster, t.TempDir(), cluster.Env(variable)+"/"+name); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(cluster.Env(devcluster.EnvGitRoot), name, "HEAD")); err != nil {
				t.Errorf("no bare repository: %v", err)
			}
		}
	})

	t.Run("Load", func(t *testing.T) {
		loaded, err := devcluster.Load(filepath.Dir(cluster.Env(devcluster.EnvDataDir)))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(loaded.Environ(), cluster.Environ()) {
			t.Errorf("got environment %v, want %v", loaded.Environ(), cluster.Environ())
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
		t.Errorf("got %v, want Forbidden: %s", err, out)
	}
	who, err := kubectl.Run(t.Context(), "auth", "whoami", "--output=jsonpath={.status.userInfo.username} {.status.userInfo.groups}")
	if err != nil || who != `jane ["dev","system:authenticated"]` {
		t.Errorf("got user %v: %s, want jane in dev", err, who)
	}
	admin := cluster.Kubectl(cluster.Admin())
	if _, err := admin.Run(t.Context(), "create", "clusterrolebinding", "dev", "--clusterrole=view", "--group=dev"); err != nil {
		t.Fatal(err)
	}
	testkit.EventuallyWithin(t, deadline, "the group's right", func(ctx context.Context) error {
		_, err := kubectl.Run(ctx, "get", "configmaps", "--all-namespaces")
		return err
	})
	other, err := cluster.User("jane")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Kubectl(other).Run(t.Context(), "get", "configmaps"); err == nil {
		t.Error("a user of the same name outside of the group has the rights of the group")
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
		t.Errorf("second cluster: got namespace of the first: %v: %s", err, out)
	}
	if err := clusters[0].Stop(t.Context()); err != nil {
		t.Errorf("stop the first cluster: %v", err)
	}
	checkStopped(t, dirs[0])
	if _, err := b.Run(t.Context(), "get", "namespaces"); err != nil {
		t.Errorf("second cluster after the first was stopped: %v", err)
	}
	if err := clusters[1].Stop(t.Context()); err != nil {
		t.Errorf("stop the second cluster: %v", err)
	}
	checkStopped(t, dirs[1])
}

func TestStopKeepsOtherFiles(t *testing.T) {
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
		t.Errorf("got %v, %v, want only the other file", entries, err)
	}
}

// A cluster that is not detached ends with the process that started it, even when that process
// is killed.
func TestStopWithStarter(t *testing.T) {
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
	output := make([]byte, len("started"))
	if _, err := stdout.Read(output); err != nil || string(output) != "started" {
		t.Errorf("got output %q, %v, want started", output, err)
	}
	if err := starter.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// Wait returns an error, since the process was killed.
	_ = starter.Wait()
	testkit.EventuallyWithin(t, deadline, "the cluster to stop", func(context.Context) error {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			return fmt.Errorf("folder still exists: %w", err)
		}
		return nil
	})
	testkit.EventuallyWithin(t, deadline, "the guard to end", func(context.Context) error {
		if left := processesOf(t, filepath.Dir(dir)); len(left) > 0 {
			return fmt.Errorf("processes still running: %v", left)
		}
		return nil
	})
}

func TestStartInvalidOptions(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "note"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		options devcluster.Options
		want    string
	}{
		"NoFolder":          {devcluster.Options{}, "folder of the development cluster is not set"},
		"FolderInUse":       {devcluster.Options{Dir: full}, "not empty"},
		"UnknownStorage":    {devcluster.Options{Dir: t.TempDir(), Storage: "paper"}, `storage "paper"`},
		"ReplicasWithFiles": {devcluster.Options{Dir: t.TempDir(), Replicas: 2}, "need storage etcd3"},
		"NegativeReplicas":  {devcluster.Options{Dir: t.TempDir(), Replicas: -1}, "want 1 or more"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := devcluster.Start(t.Context(), test.options)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}

// writeScript writes a shell script that replaces a server.
func writeScript(t *testing.T, script string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return program
}

// The error of a part that does not start contains the end of its log, and all other parts are stopped.
func TestStartFailure(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	program := writeScript(t, "echo file not found >&2; echo WARNING: DATA RACE >&2; exit 3")
	_, err := devcluster.Start(t.Context(), devcluster.Options{Dir: dir, Server: true, ServerProgram: program})
	if err == nil || !strings.Contains(err.Error(), "file not found") || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("got error %v, want the end of the server's log", err)
	}
	if left := processesOf(t, dir); len(left) > 0 {
		t.Errorf("processes still running:\n%s", strings.Join(left, "\n"))
	}
	cluster, err := devcluster.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.Stop(t.Context()); err == nil || !strings.Contains(err.Error(), "DATA RACE") {
		t.Errorf("got error %v, want the reported data race", err)
	}
	checkStopped(t, dir)
}
