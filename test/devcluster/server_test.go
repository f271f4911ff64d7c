// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster_test

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
)

// gitRepoConfig is an object that needs no remote.
const gitRepoConfig = `apiVersion: configbutler.ai/v1alpha1
kind: GitRepoConfig
metadata:
  namespace: default
  name: kept
spec:
  repoUrl: https://git.example.com/kept.git
  allowedBranches: [main]
`

// getGitRepoConfig returns an error unless the object is served through the aggregator.
func getGitRepoConfig(ctx context.Context, kubectl devcluster.Kubectl) error {
	_, err := kubectl.Run(ctx, "--namespace=default", "get", "gitrepoconfig", "kept")
	return err
}

// The aggregated API is authorized with RBAC.
func TestServer(t *testing.T) {
	cluster := clustertest.Start(t, devcluster.Options{Server: true})
	admin := cluster.Kubectl(cluster.Admin())
	if _, err := admin.Feed(t.Context(), gitRepoConfig, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}

	t.Run("UserWithoutRights", func(t *testing.T) {
		jane, err := cluster.User("jane")
		if err != nil {
			t.Fatal(err)
		}
		err = getGitRepoConfig(t.Context(), cluster.Kubectl(jane))
		if err == nil || !strings.Contains(err.Error(), "Forbidden") {
			t.Errorf("got error %v, want Forbidden", err)
		}
	})

	for name, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGTERM} {
		t.Run("Restart/"+name, func(t *testing.T) {
			pid := cluster.Env(devcluster.EnvServerPIDs)
			if err := cluster.StopServer(t.Context(), signal); err != nil {
				t.Fatal(err)
			}
			if err := getGitRepoConfig(t.Context(), admin); err == nil {
				t.Error("the API is available although the server is stopped")
			}
			if left := cluster.Env(devcluster.EnvServerPIDs); left != "" {
				t.Errorf("environment has processes of a stopped server: %s", left)
			}
			if err := cluster.StartServer(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := getGitRepoConfig(t.Context(), admin); err != nil {
				t.Error(err)
			}
			if now := cluster.Env(devcluster.EnvServerPIDs); now == "" || now == pid {
				t.Errorf("got process %[2]q after the restart of %[1]s", pid, now)
			}
		})
	}

	t.Run("StartRunningServer", func(t *testing.T) {
		pid := cluster.Env(devcluster.EnvServerPIDs)
		if err := cluster.StartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now := cluster.Env(devcluster.EnvServerPIDs); now != pid {
			t.Errorf("got processes %[2]s, want %[1]s", pid, now)
		}
	})
}

func TestReplicas(t *testing.T) {
	cluster := clustertest.Start(t, devcluster.Options{
		Server: true, Storage: devcluster.StorageEtcd3, Replicas: 2,
	})
	admin := cluster.Kubectl(cluster.Admin())
	if _, err := admin.Feed(t.Context(), gitRepoConfig, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if pids := strings.Fields(cluster.Env(devcluster.EnvServerPIDs)); len(pids) != 2 {
		t.Errorf("got processes %v, want two", pids)
	}
	for _, replica := range []int{0, 1} {
		if err := cluster.StopServer(t.Context(), syscall.SIGKILL, replica); err != nil {
			t.Fatal(err)
		}
		if pids := strings.Fields(cluster.Env(devcluster.EnvServerPIDs)); len(pids) != 1 {
			t.Errorf("got processes %[2]v after replica %[1]d was stopped, want one", replica, pids)
		}
		testkit.EventuallyWithin(t, deadline, "the other replica", func(ctx context.Context) error { return getGitRepoConfig(ctx, admin) })
		if err := cluster.StartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
