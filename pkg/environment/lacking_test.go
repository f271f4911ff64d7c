// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
)

// delivery is an application that uses the API of its cluster: it has roles, and a StatefulSet whose Service does not exist.
var delivery = struct{ controller, server, rights []string }{
	controller: []string{`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: controller}
spec:
  serviceName: controller
  selector: {matchLabels: {app: controller}}
  template:
    metadata: {labels: {app: controller}}
    spec:
      serviceAccountName: controller
      containers: [{name: main, image: "delivery:1"}]
      volumes: [{name: cache, persistentVolumeClaim: {claimName: cache}}]
`, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: controller}}", `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: controller}
spec:
  podSelector: {matchLabels: {app: controller}}
  ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: production}}}]}]
`},
	server: []string{`
apiVersion: apps/v1
kind: Deployment
metadata: {name: server}
spec:
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec: {serviceAccountName: server, containers: [{name: main, image: "delivery:1"}]}
`, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: server}}",
		"{apiVersion: v1, kind: Service, metadata: {name: server}, spec: {selector: {app: server}, ports: [{port: 80}]}}",
		"{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: server}, spec: {podSelector: {matchLabels: {app: server}}, " +
			"ingress: [{}]}}",
	},
	rights: []string{
		role("Role", "controller"), role("Role", "server"),
		binding("RoleBinding", "controller", "Role", "production"), binding("RoleBinding", "server", "Role", "production"),
	},
}

func role(kind, name string) string {
	return fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: %s, metadata: {name: %s}, "+
		"rules: [{apiGroups: [''], resources: [configmaps, secrets], verbs: [get, list, watch]}]}", kind, name)
}

// binding binds a role to the ServiceAccount of the same name in a namespace.
func binding(kind, name, role, namespace string) string {
	return fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: %s, metadata: {name: %s}, "+
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %[2]s}, subjects: [{kind: ServiceAccount, name: %[2]s, "+
		"namespace: %[4]s}]}",
		kind, name, role, namespace)
}

// deliver puts the application into production, and has the catalog offer its workloads with a revision.
func (s *fixture) deliver(revision int64) {
	s.Helper()
	s.produce(slices.Concat(delivery.controller[1:], delivery.server[1:], delivery.rights)...)
	s.cluster.Put(environmenttest.Object(s, binding("ClusterRoleBinding", "controller", "ClusterRole", "production")))
	s.offer(revision, delivery.controller[0], delivery.server[0])
}

// lacking returns the objects that the environment alice reports as not copied.
func lacking(e *v1alpha1.Environment) []string {
	names := []string{}
	for _, object := range e.Status.NotCopied {
		names = append(names, strings.TrimSpace(fmt.Sprintf("%s %s %s", object.Kind, object.Name, strings.Join(object.ServiceAccounts, ","))))
	}
	return names
}

// including makes the environment alice include the objects that the application reads through the API.
func including(e *v1alpha1.Environment) {
	e.Spec.Include = []v1alpha1.IncludedObject{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "projects"}, {APIVersion: "v1", Kind: "Secret", Name: "repository"},
		{APIVersion: "example.com/v1", Kind: "Widget", Name: "project"},
	}
}

// TestApplicationWithRights syncs an application that uses the API of its cluster. Objects that are not copied are reported until a user
// has created them.
func TestApplicationWithRights(t *testing.T) {
	s := newFixture(t, including)
	s.produce("{apiVersion: v1, kind: ConfigMap, metadata: {name: projects}, data: {a: b}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: repository}, data: {a: aHVudGVyMg==}}",
		"{apiVersion: example.com/v1, kind: Widget, metadata: {name: project}, spec: {a: b}}")
	s.deliver(2)
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.start(0)
	s.applied(2)
	s.reaches("the objects that are not copied", func(e *v1alpha1.Environment) bool {
		return slices.Equal(lacking(e), []string{
			"ClusterRoleBinding controller controller", "PersistentVolumeClaim cache", "Role controller controller", "Role server server",
			"RoleBinding controller controller", "RoleBinding server server",
		}) && apimeta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionObjectsMissing)
	})
	message := apimeta.FindStatusCondition(s.environment("alice").Status.Conditions, v1alpha1.ConditionObjectsMissing).Message
	if want := "shop-alice lacks what the server does not copy: ClusterRoleBinding controller, PersistentVolumeClaim cache, " +
		"Role controller, Role server, RoleBinding controller, RoleBinding server; " +
		"kubectl slipstream missing alice -n teams prints it"; message != want {
		t.Errorf("message = %q", message)
	}
	want := []string{
		"configmaps/projects", "deployments/server", "networkpolicies/controller", "networkpolicies/server", "secrets/repository",
		"serviceaccounts/controller", "serviceaccounts/default", "serviceaccounts/server", "services/server", "statefulsets/controller",
		"widgets/project",
	}
	if diff := cmp.Diff(want, s.cluster.Names(environmenttest.Target)); diff != "" {
		t.Errorf("objects of the target (-want +got):\n%s", diff)
	}

	for _, text := range []string{
		role("Role", "controller"), role("Role", "server"), binding("RoleBinding", "controller", "Role", environmenttest.Target),
		binding("RoleBinding", "server", "Role", environmenttest.Target),
		"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: cache}}",
	} {
		o := environmenttest.Object(t, text)
		o.SetNamespace(environmenttest.Target)
		s.cluster.Put(o)
	}
	s.reaches("the remaining objects that are not copied", func(e *v1alpha1.Environment) bool {
		return slices.Equal(lacking(e), []string{"ClusterRoleBinding controller controller"})
	})
	beside := environmenttest.Object(t, binding("ClusterRoleBinding", "controller", "ClusterRole", environmenttest.Target))
	beside.SetName("controller-" + environmenttest.Target)
	s.cluster.Put(beside)
	s.reaches("nothing", func(e *v1alpha1.Environment) bool {
		return len(lacking(e)) == 0 && apimeta.IsStatusConditionFalse(e.Status.Conditions, v1alpha1.ConditionObjectsMissing)
	})

	s.produce("{apiVersion: example.com/v1, kind: Widget, metadata: {name: project}, spec: {a: c}}")
	s.reaches("that a custom resource has changed", func(e *v1alpha1.Environment) bool {
		return slices.Equal(e.Status.ChangedDependencies, []v1alpha1.DependencyCount{{Type: v1alpha1.CountedCustomResource, Count: 1}})
	})
}
