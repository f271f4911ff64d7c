// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pictures

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/pagetest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// The users. alice has the page, and may do everything. The others edit production, and flux is its controller.
const (
	alice, bob, carol, dana = "alice", "bob", "carol", "dana"
	flux                    = "system:serviceaccount:flux-system:kustomize-controller"
	teams                   = "teams"
)

// sources are the namespaces of production, with their Deployments and images.
var sources = map[string][]string{
	"shop":     {"web:2.3", "cart:3.1", "search:1.9"},
	"payments": {"gateway:5.0", "ledger:1.4"},
}

// environment is an environment of a catalog.
type environment struct {
	name, catalog string
	// lines are more lines of its spec.
	lines string
	// state is the beginning of its STATE in the end.
	state string
}

var environments = []environment{
	{"staging", "shop", "autoSync: true", "Synced"},
	{"alice", "shop", "autoSync: true", "Synced"},
	{"bob", "shop", "", "2 workloads, 1 ConfigMap changed"},
	{"load-test", "shop", "", "Failed"},
	{"new-checkout", "shop", "type: Branch\n  branchWorkloads: [{kind: Deployment, name: cart}]", "Conflict: 2 fields"},
	{"carol", "shop", "", "Not synced yet"},
	{"payments-staging", "payments", "autoSync: true", "Synced"},
	{"payments-audit", "payments", "", "1 workload changed"},
	{"dana", "payments", "autoSync: true", "Synced"},
}

// story is a cluster with a shop, its teams, and the page of alice.
type story struct {
	*mirrortest.AdminCluster
	users     map[string]*people.Person
	dashboard *pagetest.Dashboard
}

// newStory starts the cluster, in which Pods become ready, and makes the changes that the pictures show.
func newStory(t *testing.T) *story {
	t.Helper()
	s := &story{users: map[string]*people.Person{}}
	s.AdminCluster = mirrortest.NewAdminCluster(t, devcluster.Options{Admission: true, Pods: true})
	s.Apply(t, people.Everywhere("admin", alice)+people.Everywhere("slipstream-admin", alice)+`
apiVersion: configbutler.ai/v1alpha1
kind: SyncPolicy
metadata: {name: default}
spec: {batchWindow: 1s, maxSyncsPerMinute: 10000, retry: {maxAttempts: 1, backoff: 1s, maxBackoff: 1s}}
`)
	s.CreateNamespace(t, teams)
	for namespace := range sources {
		s.produce(t, namespace)
	}
	for _, each := range environments {
		s.build(t, &each)
	}
	s.change(t)
	for _, each := range environments {
		s.hasState(t, each.name, each.state)
	}
	s.person(t, alice).Run(t, "config", "rename-context", s.context(t), "production")
	s.dashboard = pagetest.StartDashboard(t, s.person(t, alice).Kubectl.User, "--allow-changes")
	return s
}

func (s *story) context(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(s.person(t, alice).Run(t, "config", "current-context"))
}

// person returns a user of that name.
func (s *story) person(t *testing.T, name string) *people.Person {
	t.Helper()
	if s.users[name] == nil {
		s.users[name] = people.New(t, s.Cluster, name)
	}
	return s.users[name]
}

// produce creates a namespace of production, its mirror, and its catalog.
func (s *story) produce(t *testing.T, namespace string) {
	t.Helper()
	s.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: configbutler.ai/v1alpha1
kind: GitRepoConfig
metadata: {name: %[1]s, namespace: %[1]s}
spec: {repoUrl: "%[2]s/%[1]s.git", allowedBranches: [main], push: {interval: 100ms}}
---
apiVersion: configbutler.ai/v1alpha1
kind: GitDestination
metadata: {name: %[1]s, namespace: %[1]s}
spec: {repoRef: {name: %[1]s}, branch: main, baseFolder: clusters/production}
---
apiVersion: configbutler.ai/v1alpha1
kind: WatchRule
metadata: {name: everything, namespace: %[1]s}
spec: {destinationRef: {name: %[1]s}, rules: [{name: all, resources: [configmaps, deployments, secrets, services]}]}
---
`, namespace, s.Env(devcluster.EnvGitURL))+people.In(namespace, "admin", bob)+people.In(namespace, "admin", carol)+people.In(namespace, "admin", dana)+
		people.In(namespace, "admin", flux))
	s.Ready(t, namespace, "watchrule/everything")
	s.person(t, carol).ApplyIn(t, namespace, deployments(sources[namespace])+`
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {BANNER: Autumn sale, CURRENCY: EUR}}
---
{apiVersion: v1, kind: Secret, metadata: {name: database}, stringData: {password: only-in-the-cluster}}
`)
	var workloads []string
	for _, image := range sources[namespace] {
		name, _, _ := strings.Cut(image, ":")
		workloads = append(workloads, "{kind: Deployment, name: "+name+"}")
	}
	s.Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: AppCatalog
metadata: {name: %[1]s, namespace: %[2]s}
spec: {sourceNamespace: %[1]s, secrets: Shared, workloads: [%[3]s]}
`, namespace, teams, strings.Join(workloads, ", ")))
	s.Ready(t, teams, "cat/"+namespace)
}

// deployments returns Deployments of images, which use the settings and the database.
func deployments(images []string) string {
	var all strings.Builder
	for _, image := range images {
		name, _, _ := strings.Cut(image, ":")
		fmt.Fprintf(&all, `
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, labels: {app: %[1]s}}
spec:
  replicas: 2
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers:
      - name: %[1]s
        image: registry.example.com/%[2]s
        envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: database}}]
        resources: {limits: {memory: 256Mi}}
`, name, image)
	}
	return all.String()
}

// build creates an environment, and syncs it unless its state is to be that of a new one.
func (s *story) build(t *testing.T, e *environment) {
	t.Helper()
	target := e.catalog + "-" + strings.TrimPrefix(e.name, e.catalog+"-")
	s.CreateNamespace(t, target)
	if e.state == "Failed" {
		s.ConfigMap(t, target, "settings", "BANNER: Load test") // Not written by an environment, so the sync fails.
	}
	s.person(t, alice).Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: Environment
metadata: {name: %s, namespace: %s}
spec:
  catalogRef: {name: %s}
  targetNamespace: %s
  %s
`, e.name, teams, e.catalog, target, e.lines))
	if e.state == "Not synced yet" {
		return
	}
	s.sync(t, e.name)
	if e.state != "Failed" {
		s.hasState(t, e.name, "Synced")
	}
}

// change has the users change production and a branch.
func (s *story) change(t *testing.T) {
	t.Helper()
	set := func(user, namespace, name, image, memory string) {
		t.Helper()
		s.person(t, user).Run(t, "patch", "deployment", name, "-n", namespace, "-p", fmt.Sprintf(`{
			"metadata": {"annotations": {"configbutler.ai/reason": "release of %[2]s"}},
			"spec": {"template": {"spec": {"containers": [
				{"name": %[1]q, "image": "registry.example.com/%[2]s", "resources": {"limits": {"memory": %[3]q}}}]}}}}`, name, image, memory))
	}
	set(alice, "shop-new-checkout", "cart", "cart:new-checkout", "1Gi")
	set(carol, "shop", "cart", "cart:3.2", "512Mi")
	s.hasState(t, "new-checkout", "1 workload changed")
	s.sync(t, "new-checkout")
	s.hasState(t, "new-checkout", "Conflict")
	s.person(t, bob).Run(t, "patch", "configmap", "settings", "-n", "shop", "-p",
		`{"metadata":{"annotations":{"configbutler.ai/reason":"winter sale"}},"data":{"BANNER":"Winter sale"}}`)
	s.person(t, flux).ApplyIn(t, "payments", `{apiVersion: v1, kind: ConfigMap, metadata: {name: limits,
  labels: {kustomize.toolkit.fluxcd.io/name: payments, kustomize.toolkit.fluxcd.io/namespace: flux-system}}, data: {daily: "10000"}}`)
	s.listed(t, "payments", "limits", 1)
	s.person(t, dana).Run(t, "patch", "configmap", "limits", "-n", "payments", "-p", `{"data":{"daily":"25000"}}`)
	set(dana, "payments", "ledger", "ledger:1.5", "256Mi")
	s.person(t, carol).Run(t, "create", "service", "clusterip", "search", "--tcp=80", "-n", "shop")
	s.person(t, bob).Run(t, "scale", "deployment/search", "--replicas=3", "-n", "shop")
	set(carol, "shop", "web", "web:2.4", "256Mi")
	s.listed(t, "payments", "ledger", 2)
	s.listed(t, "shop", "web", 2)
}

// listed waits until an object has a number of Changes.
func (s *story) listed(t *testing.T, namespace, name string, count int) {
	t.Helper()
	mirrortest.Eventually(t, "the changes of "+name+" are listed", func(ctx context.Context) error {
		out, err := s.Administrator.Run(ctx, "get", "changes", "-n", namespace, "--field-selector=object.name="+name, "-o", "name")
		if got := len(strings.Fields(out)); err == nil && got < count {
			err = fmt.Errorf("%d changes", got)
		}
		return err
	})
}

// sync has alice request a sync.
func (s *story) sync(t *testing.T, name string) {
	t.Helper()
	path := "/apis/configbutler.ai/v1alpha1/namespaces/" + teams + "/environments/" + name + "/sync"
	if _, err := s.person(t, alice).Try.Post(t.Context(), path, "{}"); err != nil {
		t.Fatal(err)
	}
}

// hasState waits until the STATE of an environment has a prefix.
func (s *story) hasState(t *testing.T, name, state string) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("environment %s has the state %q", name, state), func(ctx context.Context) error {
		got, err := s.Try.Cell(ctx, teams, "envt/"+name, "STATE")
		if err == nil && !strings.HasPrefix(got, state) {
			err = fmt.Errorf("state %q", got)
		}
		return err
	})
}
