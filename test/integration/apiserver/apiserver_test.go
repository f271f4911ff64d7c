// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver proves on a real control plane that our kinds behave as kinds of Kubernetes do: for kubectl, for
// RBAC, for informers, and for kube-controller-manager.
package apiserver

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/clustertest"
)

// deadline is more than anything waited for here takes on a busy machine. An informer that has been cut off may wait for a minute
// before it asks again.
const deadline = 3 * time.Minute

// stage is a cluster with the server, and the administrator's ways to use it.
type stage struct {
	*devcluster.Cluster
	admin  devcluster.Kubectl
	client dynamic.Interface
}

func newStage(t *testing.T, options devcluster.Options) *stage {
	t.Helper()
	cluster := clustertest.Start(t, options)
	config, err := cluster.Admin().RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &stage{Cluster: cluster, admin: cluster.Kubectl(cluster.Admin()), client: client}
}

// TestAPI runs on one cluster: starting it takes longer than most of what is shown on it. Tests have namespaces of
// their own; those that stop the server come last.
func TestAPI(t *testing.T) {
	s := newStage(t, devcluster.Options{Server: true})
	for _, each := range []struct {
		name string
		test func(*testing.T, *stage)
	}{
		{"discovery names every kind", testDiscovery},
		{"every kind is created, read, changed and deleted", testLifeOfEveryKind},
		{"records are for reading", testRecords},
		{"records of catalogs are for reading", testCatalogRecords},
		{"explain tells what fields mean", testExplain},
		{"unknown fields are refused", testFieldValidation},
		{"server-side apply divides fields between managers", testServerSideApply},
		{"rules need no names", testRuleNames},
		{"server-side apply divides workloads between managers", testCatalogApply},
		{"a dry run stores nothing", testDryRun},
		{"wait sees conditions and deletions", testWait},
		{"invalid input is told where and why", testInvalidInput},
		{"lists come in pages", testPages},
		{"a watch begins with what is there", testInitialEvents},
		{"a watch sees an object leave its selector", testSelectors},
		{"a token that continues no list is refused", testForeignToken},
		{"RBAC rules every verb", testRBAC},
		{"the documented roles allow what they say", testRoles},
		{"a rule needs the rights of its author", testCallerRights},
		{"a catalog needs the rights of its author", testCatalogRights},
		{"a pipeline needs the rights of its author", testPipelineRights},
		{"an edit is noted with its author", testEdits},
		{"an edit of an environment is noted with its author", testEnvironmentEdits},
		{"an environment does not get in the way of others", testEnvironmentPlacement},
		{"requests have defaults", testRequests},
		{"pipelines are judged, and take requests", testPipelines},
		{"what a user says of a record stays", testRecordRequests},
		{"what failed is tried again", testRetry},
		{"each request is a right of its own", testRequestRights},
		{"requests for an environment have defaults, and are carried out", testEnvironmentRequests},
		{"each request for an environment is a right of its own", testEnvironmentRequestRights},
		{"a namespace with our objects is deleted", testNamespaceDeletion},
		{"a record goes with its owner", testGarbageCollection},
		{"a restart keeps objects and revisions", testRestart},
		{"a crash keeps what was answered", testCrash},
		{"a namespace is not deleted before the server is back", testNamespaceWaits},
		{"a namespace is deleted without the server, once the API is unregistered", testBreakGlass},
	} {
		t.Run(each.name, func(t *testing.T) {
			each.test(t, s)
			if err := s.ControllerManagerHealthy(t.Context()); err != nil {
				t.Errorf("kube-controller-manager: %v", err)
			}
		})
	}
}

// resource is one of our kinds in the API.
func resource(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "configbutler.ai", Version: "v1alpha1", Resource: plural}
}

// kubectl runs kubectl as the administrator and fails the test if it fails.
func (s *stage) kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := s.admin.Run(t.Context(), arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// apply applies a manifest as the administrator.
func (s *stage) apply(t *testing.T, manifest string, arguments ...string) string {
	t.Helper()
	out, err := s.admin.Feed(t.Context(), manifest, append([]string{"apply", "-f", "-"}, arguments...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// namespace makes a namespace for a test.
func (s *stage) namespace(t *testing.T, name string) string {
	t.Helper()
	s.kubectl(t, "create", "namespace", name)
	return name
}

// jsonpath reads one value of an object.
func (s *stage) jsonpath(t *testing.T, path string, arguments ...string) string {
	t.Helper()
	return s.kubectl(t, append(append([]string{"get"}, arguments...), "-o", "jsonpath="+path)...)
}

// eventually waits until check succeeds.
func eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, deadline, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v (last: %v)", what, err, last)
	}
}

// contains fails the test unless text holds every part.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}

// manifests of the kinds that users write, for a namespace.
func repositoryIn(namespace string) string {
	return fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: GitRepoConfig
metadata: {namespace: %s, name: repo}
spec: {repoUrl: "https://127.0.0.1:9/repo.git", allowedBranches: [main]}
`, namespace)
}

func destinationIn(namespace string) string {
	return fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: GitDestination
metadata: {namespace: %s, name: dest}
spec: {repoRef: {name: repo}, branch: main, baseFolder: clusters/%[1]s, secrets: Omit}
`, namespace)
}

func ruleIn(namespace string) string {
	return fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: WatchRule
metadata: {namespace: %s, name: rule}
spec: {destinationRef: {name: dest}, rules: [{name: some, apiGroups: [""], resources: [configmaps]}]}
`, namespace)
}

func clusterRuleFor(namespace string) string {
	return fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: ClusterWatchRule
metadata: {name: %s}
spec:
  destinationRef: {namespace: %[1]s, name: dest}
  rules: [{name: crds, scope: Cluster, apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions]}]
`, namespace)
}

// metadataName selects one object by its name.
func metadataName(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: "metadata.name=" + name}
}
