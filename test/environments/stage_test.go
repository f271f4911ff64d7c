// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	// catalogsRole and sourceRole are what the server needs in the source of a catalog that environments are made of,
	// targetRole in a target, readinessRole in the cluster, and namespacesRole, too, if it is to make targets.
	catalogsRole   = "slipstream-server-catalogs"
	sourceRole     = "slipstream-server-environment-sources"
	targetRole     = "slipstream-server-environment-targets"
	readinessRole  = "slipstream-server-environment-readiness"
	namespacesRole = "slipstream-server-environment-namespaces"
)

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

// readers may read what a catalog shows: all of view, and Secrets.
const readers = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: secret-readers}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get, list, watch]}
`

// stage is a cluster with the server, and its people.
type stage struct {
	*mirrortest.Stage
	// ann runs production, eve edits catalogs of it, dave has environments, and mallory would like to have some.
	ann, eve, dave, mallory *person
	// admin may do everything, and is used to look only, and for what people do not do.
	admin *person
	// clusterLog is the audit log of kube-apiserver, ownLog that of the server.
	clusterLog, ownLog string
}

// person is a user.
type person struct {
	name    string
	kubectl devcluster.Kubectl
	client  kubernetes.Interface
	dynamic dynamic.Interface
	own     versioned.Interface
}

// newStage starts a cluster whose kube-apiserver tells who makes changes, and writes it down.
func newStage(t *testing.T) *stage {
	t.Helper()
	logs := t.TempDir()
	s := &stage{clusterLog: filepath.Join(logs, "cluster.log"), ownLog: filepath.Join(logs, "own.log")}
	s.Stage, _ = mirrortest.NewWiredStage(t, devcluster.Options{
		Audit:         true,
		APIServerArgs: []string{"--audit-log-path=" + s.clusterLog, "--audit-log-mode=blocking"},
		ServerArgs:    []string{"--audit-log-path=" + s.ownLog},
	}, func(base *mirrortest.Stage) devcluster.Kubeconfig { return limited(t, base) })
	s.Run(t, "apply", "-f", rolesFile)
	s.Apply(t, readers)
	s.ann, s.eve, s.dave, s.mallory = s.person(t, "ann"), s.person(t, "eve"), s.person(t, "dave"), s.person(t, "mallory")
	s.admin = newPerson(t, "admin", s.Administrator)
	s.govern(t)
	return s
}

// limited is the server's user with the documented rights, less those to mirror. In the source of a catalog and in the
// target of an environment it needs more.
func limited(t *testing.T, s *mirrortest.Stage) devcluster.Kubeconfig {
	t.Helper()
	content, err := os.ReadFile(serverRolesFile)
	if err != nil {
		t.Fatal(err)
	}
	s.Run(t, "create", "namespace", "shop") // that of the examples
	s.Apply(t, strings.ReplaceAll(string(content), serverAccount, serverUser))
	s.Apply(t, everywhere(readinessRole, serverName))
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
	p := &person{name: name, kubectl: kubectl, client: mirrortest.Client(t, kubectl.User)}
	if p.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if p.own, err = versioned.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return p
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

// govern sets what all environments share: windows as short as they may be, and few attempts, unless the lines say more.
func (s *stage) govern(t *testing.T, lines ...string) {
	t.Helper()
	if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "retry: ") }) {
		lines = append(lines, "retry: {maxAttempts: 2, backoff: 1s, maxBackoff: 1s}")
	}
	s.Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: SyncPolicy
metadata: {name: default}
spec:
  batchWindow: 1s
  maxSyncsPerMinute: 10000
  %s
`, strings.Join(lines, "\n  ")))
}

// restart ends the server as a signal does, and starts it again.
func (s *stage) restart(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := s.StopServer(t.Context(), signal); err != nil {
		t.Fatal(err)
	}
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
}
