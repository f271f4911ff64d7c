// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sealing

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
	"github.com/configbutler/slipstream/test/devcluster/programs"
)

// TestReplicas lets two servers make one key and come to seal under another one, with no more rights than they need: either opens
// what the other has sealed, and what the dead leader left is brought to Git by the next one.
func TestReplicas(t *testing.T) {
	t.Parallel()
	s := newStage(t, devcluster.Options{Storage: devcluster.StorageEtcd3, Replicas: 2, Parts: []string{"slipstream-server-mirrored"}})
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.EtcdURL()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	s.mirrorASecret(t)
	s.ready(t, true)

	allEncryptedBy(t, rows(t, client.KV, "/slipstream"), "secretbox", repositories, records, outbox)
	s.sealedUnder(t, client.KV, s.rotate(t))
	allEncryptedBy(t, rows(t, client.KV, "/slipstream"), "secretbox", repositories, records, outbox)

	if err := s.StopServer(t.Context(), syscall.SIGKILL, 0); err != nil {
		t.Fatal(err)
	}
	s.readable(t)
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.StopServer(t.Context(), syscall.SIGKILL, 1); err != nil {
		t.Fatal(err)
	}
	s.readable(t)
	s.acceptPushes(t)
}

// rotated is what the command says that adds a key, with the name of that.
var rotated = regexp.MustCompile(`(?m)^key (\S+) added to Secret ` + devcluster.ServerNamespace + `/slipstream-encryption `)

// rotate adds a key, as people do in the container of a server, and returns its name.
func (s *stage) rotate(t *testing.T) (key string) {
	t.Helper()
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	program, err := programs.Product(t.Context(), root, "cmd/slipstream")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program, "store", "rotate-key", "--storage-backend=etcd3",
		"--namespace="+devcluster.ServerNamespace, "--kubeconfig="+string(s.ServerAccount())).CombinedOutput()
	found := rotated.FindSubmatch(out)
	if err != nil || found == nil {
		t.Fatalf("adding a key: %v\n%s", err, out)
	}
	return string(found[1])
}

// sealedUnder waits until everything is sealed under a key. Before, every replica has the time to load it.
func (s *stage) sealedUnder(t *testing.T, kv clientv3.KV, key string) {
	t.Helper()
	eventually(t, "everything to be sealed under the new key", func(context.Context) error {
		for name, value := range rows(t, kv, "/slipstream") {
			if by := encryption.EncryptedBy(value); !strings.Contains(by, key) {
				return fmt.Errorf("%s is sealed by %q", name, by)
			}
		}
		return nil
	})
}

// readable waits until the replica that is left shows what another one has sealed. A request may be on its way to the one that
// has just been killed.
func (s *stage) readable(t *testing.T) {
	t.Helper()
	eventually(t, "the repository to be read", func(ctx context.Context) error {
		_, err := s.admin.Run(ctx, "get", "grc", "main", "-n", "shop")
		return err
	})
}
