// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster_test

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/clustertest"
)

// gitRepoConfig is an object that the server keeps without any remote's help.
const gitRepoConfig = `apiVersion: configbutler.ai/v1alpha1
kind: GitRepoConfig
metadata:
  namespace: default
  name: kept
spec:
  repoUrl: https://git.example.com/kept.git
  allowedBranches: [main]
`

// kept returns an error unless the object is served through the aggregator.
func kept(ctx context.Context, kubectl devcluster.Kubectl) error {
	_, err := kubectl.Run(ctx, "--namespace=default", "get", "gitrepoconfig", "kept")
	return err
}

// The server is a user like others to the aggregated API: what it may do is up to RBAC.
func TestServer(t *testing.T) {
	cluster := clustertest.Start(t, devcluster.Options{Server: true})
	admin := cluster.Kubectl(cluster.Admin())
	if _, err := admin.Feed(t.Context(), gitRepoConfig, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}

	t.Run("an ordinary user is refused behind the aggregator", func(t *testing.T) {
		jane, err := cluster.User("jane")
		if err != nil {
			t.Fatal(err)
		}
		err = kept(t.Context(), cluster.Kubectl(jane))
		if err == nil || !strings.Contains(err.Error(), "Forbidden") {
			t.Errorf("want a refusal, got %v", err)
		}
	})

	for name, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGTERM} {
		t.Run("objects outlive a server that is "+name, func(t *testing.T) {
			pid := cluster.Env(devcluster.EnvServerPIDs)
			if err := cluster.StopServer(t.Context(), signal); err != nil {
				t.Fatal(err)
			}
			if err := kept(t.Context(), admin); err == nil {
				t.Error("the API answers although the server is stopped")
			}
			if left := cluster.Env(devcluster.EnvServerPIDs); left != "" {
				t.Errorf("the environment names processes: %s", left)
			}
			if err := cluster.StartServer(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := kept(t.Context(), admin); err != nil {
				t.Error(err)
			}
			if now := cluster.Env(devcluster.EnvServerPIDs); now == "" || now == pid {
				t.Errorf("want another process than %s, got %q", pid, now)
			}
		})
	}

	t.Run("starting what runs changes nothing", func(t *testing.T) {
		pid := cluster.Env(devcluster.EnvServerPIDs)
		if err := cluster.StartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now := cluster.Env(devcluster.EnvServerPIDs); now != pid {
			t.Errorf("want %s, got %s", pid, now)
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
		t.Errorf("want two processes, got %v", pids)
	}
	for _, replica := range []int{0, 1} {
		if err := cluster.StopServer(t.Context(), syscall.SIGKILL, replica); err != nil {
			t.Fatal(err)
		}
		if pids := strings.Fields(cluster.Env(devcluster.EnvServerPIDs)); len(pids) != 1 {
			t.Errorf("want one process without replica %d, got %v", replica, pids)
		}
		eventually(t, "the other replica's answer", func(ctx context.Context) error { return kept(ctx, admin) })
		if err := cluster.StartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
