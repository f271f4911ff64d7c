// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sealing

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/configbutler/slipstream/test/devcluster"
)

// documentedRoles are what the documentation gives the server's account.
const documentedRoles = "../../../artifacts/examples/server-roles.yaml"

// TestReplicas lets two servers make one key, with no more rights than the documentation gives them: either opens what
// the other has sealed, and what the dead leader left is brought to Git by the next one.
func TestReplicas(t *testing.T) {
	t.Parallel()
	s := newStage(t, devcluster.Options{Storage: devcluster.StorageEtcd3, Replicas: 2})
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.EtcdURL()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	s.limitRights(t, client.KV)
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

// limitRights starts the servers without their key, what is sealed by it, and the rights of an administrator.
func (s *stage) limitRights(t *testing.T, kv clientv3.KV) {
	t.Helper()
	if err := s.StopServer(t.Context(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Delete(t.Context(), "/slipstream", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	s.kubectl(t, "delete", "secret", "slipstream-encryption", "-n", devcluster.ServerNamespace)
	s.kubectl(t, "delete", "clusterrolebinding", "slipstream-development")
	roles, err := os.ReadFile(documentedRoles)
	if err != nil {
		t.Fatal(err)
	}
	account := "{kind: ServiceAccount, namespace: " + devcluster.ServerNamespace + ", name: slipstream}"
	user := "{apiGroup: rbac.authorization.k8s.io, kind: User, name: " + devcluster.ServerUser + "}"
	s.kubectl(t, "create", "namespace", "shop")
	s.apply(t, strings.ReplaceAll(string(roles), account, user)+mayReadSecrets)
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// mayReadSecrets is what a destination takes that writes Secrets as they are.
const mayReadSecrets = `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: mirrored-secrets, namespace: shop}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: mirrored-secrets, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: mirrored-secrets}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: slipstream}
`
