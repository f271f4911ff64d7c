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

// delivery is an application that works on the cluster it runs in: it has rights there, and a StatefulSet whose Service does not exist.
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
		"{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: server}, spec: {podSelector: {matchLabels: {app: server}}, ingress: [{}]}}",
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

// binding binds the role of a name to the ServiceAccount of that name in a namespace.
func binding(kind, name, role, namespace string) string {
	return fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: %s, metadata: {name: %s}, "+
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %[2]s}, subjects: [{kind: ServiceAccount, name: %[2]s, namespace: %[4]s}]}",
		kind, name, role, namespace)
}

// deliver has the application in production, and the catalog offer its workloads with a revision.
func (s *fixture) deliver(revision int64) {
	s.Helper()
	s.produce(slices.Concat(delivery.controller[1:], delivery.server[1:], delivery.rights)...)
	s.cluster.Put(environmenttest.Object(s, binding("ClusterRoleBinding", "controller", "ClusterRole", "production")))
	s.offer(revision, delivery.controller[0], delivery.server[0])
}

// lacking are the objects that the environment alice says it lacks.
func lacking(e *v1alpha1.Environment) []string {
	names := []string{}
	for _, object := range e.Status.NotCopied {
		names = append(names, strings.TrimSpace(fmt.Sprintf("%s %s %s", object.Kind, object.Name, strings.Join(object.ServiceAccounts, ","))))
	}
	return names
}

// including has the environment alice include what the application reads through the API.
func including(e *v1alpha1.Environment) {
	e.Spec.Include = []v1alpha1.IncludedObject{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "projects"}, {APIVersion: "v1", Kind: "Secret", Name: "repository"},
		{APIVersion: "example.com/v1", Kind: "Widget", Name: "project"},
	}
}

// TestApplicationWithRights syncs an application that works on the cluster. What is not copied is named, until somebody has created it.
func TestApplicationWithRights(t *testing.T) {
	s := newFixture(t, including)
	s.produce("{apiVersion: v1, kind: ConfigMap, metadata: {name: projects}, data: {a: b}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: repository}, data: {a: aHVudGVyMg==}}",
		"{apiVersion: example.com/v1, kind: Widget, metadata: {name: project}, spec: {a: b}}")
	s.deliver(2)
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.start(0)
	s.applied(2)
	s.reaches("what it lacks", func(e *v1alpha1.Environment) bool {
		return slices.Equal(lacking(e), []string{
			"ClusterRoleBinding controller controller", "PersistentVolumeClaim cache", "Role controller controller", "Role server server",
			"RoleBinding controller controller", "RoleBinding server server",
		}) && apimeta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionObjectsMissing)
	})
	message := apimeta.FindStatusCondition(s.environment("alice").Status.Conditions, v1alpha1.ConditionObjectsMissing).Message
	if want := "shop-alice lacks what the server does not copy: ClusterRoleBinding controller, PersistentVolumeClaim cache, Role controller, " +
		"Role server, RoleBinding controller, RoleBinding server; kubectl slipstream missing alice -n teams prints it"; message != want {
		t.Errorf("it says %q", message)
	}
	want := []string{
		"configmaps/projects", "deployments/server", "networkpolicies/controller", "networkpolicies/server", "secrets/repository",
		"serviceaccounts/controller", "serviceaccounts/default", "serviceaccounts/server", "services/server", "statefulsets/controller",
		"widgets/project",
	}
	if diff := cmp.Diff(want, s.cluster.Names(environmenttest.Target)); diff != "" {
		t.Errorf("the target has (-want +got):\n%s", diff)
	}

	for _, text := range []string{
		role("Role", "controller"), role("Role", "server"), binding("RoleBinding", "controller", "Role", environmenttest.Target),
		binding("RoleBinding", "server", "Role", environmenttest.Target), "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: cache}}",
	} {
		o := environmenttest.Object(t, text)
		o.SetNamespace(environmenttest.Target)
		s.cluster.Put(o)
	}
	s.reaches("what it still lacks", func(e *v1alpha1.Environment) bool {
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
