// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package people provides the users of a test's cluster and grants their permissions.
package people

import (
	"fmt"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// Server is the user of the server.
const Server = devcluster.ServerUser

// Roles of the server in the chart.
const (
	// Catalogs is the role for the source of a catalog. Sources is needed in addition if environments use the catalog.
	Catalogs = "slipstream-server-catalogs"
	Sources  = "slipstream-server-environment-sources"
	// Targets is the role for the targets of environments. Readiness is bound in the whole cluster, and so is Namespaces if environments
	// create their namespaces.
	Targets    = "slipstream-server-environment-targets"
	Readiness  = "slipstream-server-environment-readiness"
	Namespaces = "slipstream-server-environment-namespaces"
	// Pipelines is bound in the whole cluster, Jobs in the namespaces in which pipelines create Jobs.
	Pipelines = "slipstream-server-pipelines"
	Jobs      = "slipstream-server-pipeline-jobs"
)

// Person is a user.
type Person struct {
	*mirrortest.Objects
	Name    string
	Kubectl devcluster.Kubectl
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	Own     versioned.Interface
}

// New returns a user without permissions.
func New(t testing.TB, cluster *devcluster.Cluster, name string, groups ...string) *Person {
	t.Helper()
	user, err := cluster.User(name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	return as(t, name, cluster.Kubectl(user))
}

// Admin returns the cluster administrator, for checks and for changes that users do not make.
func Admin(t testing.TB, cluster *devcluster.Cluster) *Person {
	t.Helper()
	return as(t, "admin", cluster.Kubectl(cluster.Admin()))
}

func as(t testing.TB, name string, kubectl devcluster.Kubectl) *Person {
	t.Helper()
	return &Person{
		Objects: mirrortest.ObjectsOf(t, kubectl.User), Name: name, Kubectl: kubectl, Client: mirrortest.Client(t, kubectl.User),
		Dynamic: mirrortest.ClientOf(t, kubectl.User, dynamic.NewForConfig), Own: mirrortest.ClientOf(t, kubectl.User, versioned.NewForConfig),
	}
}

// Run runs kubectl as the user and fails the test if the command fails.
func (p *Person) Run(t testing.TB, arguments ...string) string {
	t.Helper()
	out, err := p.Kubectl.Run(t.Context(), arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Everywhere returns a manifest that grants a user a role in the whole cluster.
func Everywhere(role, user string) string {
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "%[2]s-%[1]s"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "%[2]s"}]
---
`, role, user)
}

// In returns a manifest that grants a user a role in a namespace.
func In(namespace, role, user string) string {
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: %[1]s, name: "%[3]s-%[2]s"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[2]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "%[3]s"}]
---
`, namespace, role, user)
}
