// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sealing

import (
	"context"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/configbutler/slipstream/test/devcluster"
)

// TestReplicas lets two servers make one key, with no more rights than they need: either opens what
// the other has sealed, and what the dead leader left is brought to Git by the next one.
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

	stored := rows(t, client.KV, "/slipstream")
	allSealedBy(t, stored, "secretbox", "/slipstream/configbutler.ai/gitrepoconfigs/",
		"/slipstream/configbutler.ai/gitdestinationstatuses/", "/slipstream-work/")

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

// readable waits until the replica that is left shows what another one has sealed. A request may be on its way to the one that
// has just been killed.
func (s *stage) readable(t *testing.T) {
	t.Helper()
	eventually(t, "the repository to be read", func(ctx context.Context) error {
		_, err := s.admin.Run(ctx, "get", "grc", "main", "-n", "shop")
		return err
	})
}
