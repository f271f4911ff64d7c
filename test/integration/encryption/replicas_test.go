// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/configbutler/slipstream/pkg/store/encryption"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
)

// TestReplicas has two servers share keys and rotate them, with minimal permissions. Each server must decrypt rows of the other one,
// and the next leader must push the changes of a killed one.
func TestReplicas(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t, devcluster.Options{Storage: devcluster.StorageEtcd3, Replicas: 2, Parts: []string{"slipstream-server-mirrored"}})
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.EtcdURL()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	s.mirrorASecret(t)
	s.waitForReady(t, true)

	allEncryptedBy(t, rows(t, client.KV, "/slipstream"), "secretbox", repositories, records, outbox)
	s.waitForKey(t, client.KV, s.rotate(t))
	allEncryptedBy(t, rows(t, client.KV, "/slipstream"), "secretbox", repositories, records, outbox)

	if err := s.StopServer(t.Context(), syscall.SIGKILL, 0); err != nil {
		t.Fatal(err)
	}
	s.waitForReadable(t)
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.StopServer(t.Context(), syscall.SIGKILL, 1); err != nil {
		t.Fatal(err)
	}
	s.waitForReadable(t)
	s.acceptPushes(t)
}

// rotated matches the output of the command that adds a key, with the name of the key.
var rotated = regexp.MustCompile(`(?m)^key (\S+) added to Secret ` + devcluster.ServerNamespace + `/slipstream-encryption `)

// rotate adds a key with the command of the program, and returns its name.
func (s *testCluster) rotate(t *testing.T) (key string) {
	t.Helper()
	program := clustertest.Program(t, "cmd/slipstream")
	out, err := exec.CommandContext(t.Context(), program, "store", "rotate-key", "--storage-backend=etcd3",
		"--namespace="+devcluster.ServerNamespace, "--kubeconfig="+string(s.ServerAccount())).CombinedOutput()
	found := rotated.FindSubmatch(out)
	if err != nil || found == nil {
		t.Fatalf("rotate-key: %v\n%s", err, out)
	}
	return string(found[1])
}

// waitForKey waits until all rows are encrypted with a key. Every replica must have loaded it before.
func (s *testCluster) waitForKey(t *testing.T, kv clientv3.KV, key string) {
	t.Helper()
	testkit.EventuallyWithin(t, deadline, "all rows to be encrypted with the new key", func(context.Context) error {
		for name, value := range rows(t, kv, "/slipstream") {
			if by := encryption.EncryptedBy(value); !strings.Contains(by, key) {
				return fmt.Errorf("%s is encrypted with %q", name, by)
			}
		}
		return nil
	})
}

// waitForReadable waits until the remaining replica decrypts rows of the other one. Requests may still be sent to the killed replica.
func (s *testCluster) waitForReadable(t *testing.T) {
	t.Helper()
	testkit.EventuallyWithin(t, deadline, "the repository to be read", func(ctx context.Context) error {
		_, err := s.admin.Run(ctx, "get", "grc", "main", "-n", "shop")
		return err
	})
}
