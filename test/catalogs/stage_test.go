// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/mirrortest"
)

// shortWindow is the shortest that a SyncPolicy may ask for. Where nothing depends on which changes are of one batch, there
// is no reason to wait longer for it.
const shortWindow = time.Second

const (
	// rolesFile has the roles that people are given, serverRolesFile those of the server's own account.
	rolesFile       = "../../artifacts/examples/roles.yaml"
	serverRolesFile = "../../artifacts/examples/server-roles.yaml"
	// serverAccount is that account, serverUser the user whom they are given here.
	serverAccount = "{kind: ServiceAccount, namespace: " + devcluster.ServerNamespace + ", name: slipstream}"
	serverUser    = "{apiGroup: rbac.authorization.k8s.io, kind: User, name: server}"
)

// rights are those of who runs production, of who edits catalogs of it, and of who may edit catalogs and not read production.
const rights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: operators}
rules:
- {apiGroups: [apps], resources: [deployments, deployments/scale, deployments/status], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: readers}
rules:
- {apiGroups: [apps], resources: [deployments], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [configmaps, services, secrets], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: operators}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: operators}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: ann}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: editors}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: slipstream-edit}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: readers}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: eve}
`

// stage is a cluster with the server, in which production has people of its own.
type stage struct {
	*mirrortest.Stage
	// wire is the server's way to kube-apiserver.
	wire *mirrortest.Wire
	// ann and bob change production, eve edits catalogs of it, mallory would like to.
	ann, bob, eve, mallory *person
}

// person is an ordinary user.
type person struct {
	name    string
	kubectl devcluster.Kubectl
	client  kubernetes.Interface
}

// newStage starts a cluster whose kube-apiserver tells who makes changes. It keeps no Deployments in memory, so that a watch
// of them is as old as etcd's history.
func newStage(t *testing.T) *stage {
	t.Helper()
	base, wire := mirrortest.NewWiredStage(t, devcluster.Options{
		Audit: true, APIServerArgs: []string{"--watch-cache-sizes=deployments.apps#0"},
	}, func(s *mirrortest.Stage) devcluster.Kubeconfig { return limited(t, s) })
	s := &stage{Stage: base, wire: wire}
	s.Run(t, "apply", "-f", rolesFile)
	s.Apply(t, rights)
	s.ann, s.bob, s.eve, s.mallory = s.person(t, "ann"), s.person(t, "bob"), s.person(t, "eve"), s.person(t, "mallory")
	s.gather(t, shortWindow)
	return s
}

// limited is the server's user with the documented rights, less those to mirror. In the source of a catalog it needs more.
func limited(t *testing.T, s *mirrortest.Stage) devcluster.Kubeconfig {
	t.Helper()
	content, err := os.ReadFile(serverRolesFile)
	if err != nil {
		t.Fatal(err)
	}
	s.Run(t, "create", "namespace", "shop") // that of the examples
	s.Apply(t, strings.ReplaceAll(string(content), serverAccount, serverUser))
	s.Run(t, "delete", "clusterrolebinding", "slipstream-server-mirrored", "slipstream-server-mirrored-secrets")
	user, err := s.User("server")
	if err != nil {
		t.Fatal(err)
	}
	return user
}

func (s *stage) person(t *testing.T, name string) *person {
	t.Helper()
	user, err := s.User(name)
	if err != nil {
		t.Fatal(err)
	}
	return &person{name: name, kubectl: s.Kubectl(user), client: mirrortest.Client(t, user)}
}

// gather sets how long changes are gathered.
func (s *stage) gather(t *testing.T, window time.Duration) {
	t.Helper()
	s.Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: SyncPolicy
metadata: {name: default}
spec: {batchWindow: %s}
`, window))
}
