// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/mirrortest"
)

const (
	// rolesFile has the roles that people are given, serverRolesFile those of the server's own account.
	rolesFile       = "../../artifacts/examples/roles.yaml"
	serverRolesFile = "../../artifacts/examples/server-roles.yaml"
	// serverAccount is that account, serverUser the user whom they are given here.
	serverAccount = "{kind: ServiceAccount, namespace: " + devcluster.ServerNamespace + ", name: slipstream}"
	serverUser    = "{apiGroup: rbac.authorization.k8s.io, kind: User, name: " + serverName + "}"
	serverName    = "server"
	// pipelinesRole is what the server needs in the cluster to tell of it, jobsRole where it makes Jobs.
	pipelinesRole = "slipstream-server-pipelines"
	jobsRole      = "slipstream-server-pipeline-jobs"
)

// readers may read everything.
const readers = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: readers}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: [get, list, watch]}
---
`

// everywhere gives a user a role in the whole cluster.
func everywhere(role, user string) string {
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[2]s-%[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[2]s}]
---
`, role, user)
}

// bind gives a user a role in a namespace.
func bind(namespace, role, user string) string {
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: %[1]s, name: %[3]s-%[2]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[2]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[3]s}]
---
`, namespace, role, user)
}

// stage is a cluster with the server, and its people.
type stage struct {
	*mirrortest.Stage
	// eve may read everything and have pipelines, mallory may have pipelines only.
	eve, mallory *person
	// admin may do everything, and is used for what happens in the cluster, and to look.
	admin *person
	// clusterLog has what the server has listed and watched at kube-apiserver.
	clusterLog string
}

// auditPolicy has kube-apiserver write down what the server lists and watches.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, users: [` + serverName + `], verbs: [list, watch]}
- {level: None}
`

// person is a user.
type person struct {
	name    string
	kubectl devcluster.Kubectl
	client  kubernetes.Interface
	dynamic dynamic.Interface
	own     versioned.Interface
}

func newStage(t *testing.T) *stage {
	t.Helper()
	logs := t.TempDir()
	s := &stage{clusterLog: filepath.Join(logs, "cluster.log")}
	policy := filepath.Join(logs, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Stage, _ = mirrortest.NewWiredStage(t, devcluster.Options{
		APIServerArgs: []string{"--audit-policy-file=" + policy, "--audit-log-path=" + s.clusterLog, "--audit-log-mode=blocking"},
	}, func(base *mirrortest.Stage) devcluster.Kubeconfig { return limited(t, base) })
	s.Run(t, "apply", "-f", rolesFile)
	s.Apply(t, readers+everywhere("readers", "eve")+everywhere("slipstream-admin", "eve")+everywhere("slipstream-admin", "mallory"))
	s.eve, s.mallory = s.person(t, "eve"), s.person(t, "mallory")
	s.admin = newPerson(t, "admin", s.Administrator)
	s.govern(t)
	return s
}

// limited is the server's user with the documented rights, less those to mirror.
func limited(t *testing.T, s *mirrortest.Stage) devcluster.Kubeconfig {
	t.Helper()
	content, err := os.ReadFile(serverRolesFile)
	if err != nil {
		t.Fatal(err)
	}
	s.Run(t, "create", "namespace", "shop") // that of the examples
	s.Apply(t, strings.ReplaceAll(string(content), serverAccount, serverUser))
	s.Apply(t, everywhere(pipelinesRole, serverName))
	s.Run(t, "delete", "clusterrolebinding", "slipstream-server-mirrored", "slipstream-server-mirrored-secrets")
	user, err := s.User(serverName)
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
	return newPerson(t, name, s.Kubectl(user))
}

func newPerson(t *testing.T, name string, kubectl devcluster.Kubectl) *person {
	t.Helper()
	config, err := kubectl.User.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	// Many objects are made at once here, and kube-apiserver knows itself what is too much.
	config.QPS = -1
	p := &person{name: name, kubectl: kubectl}
	if p.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if p.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if p.own, err = versioned.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return p
}

// govern sets what all pipelines share.
func (s *stage) govern(t *testing.T, lines ...string) {
	t.Helper()
	s.Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: SyncPolicy
metadata: {name: default}
spec:
  batchWindow: 1s
  %s
`, strings.Join(lines, "\n  ")))
}

// restart ends the server as a signal does, does something while there is none, and starts it again.
func (s *stage) restart(t *testing.T, signal syscall.Signal, meanwhile func()) {
	t.Helper()
	if err := s.StopServer(t.Context(), signal); err != nil {
		t.Fatal(err)
	}
	meanwhile()
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// run runs kubectl for what may not fail.
func (p *person) run(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := p.kubectl.Run(t.Context(), arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
