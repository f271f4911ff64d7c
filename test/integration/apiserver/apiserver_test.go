// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver tests on a real control plane that the server's kinds behave like those of Kubernetes: for kubectl, RBAC,
// informers, and kube-controller-manager.
package apiserver

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// deadline is longer than any wait of these tests on a busy machine. An informer that lost its connection may wait for a minute
// before it retries, and a compaction takes up to twice historyKept.
const deadline = testkit.Timeout

// testCluster is a cluster with a server, and clients of the administrator.
type testCluster struct {
	*devcluster.Cluster
	// Objects are for what tests only prepare or wait for.
	*mirrortest.Objects
	admin  devcluster.Kubectl
	client dynamic.Interface
}

func newTestCluster(t *testing.T, options devcluster.Options) *testCluster {
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
	return &testCluster{
		Cluster: cluster, Objects: mirrortest.ObjectsOf(t, cluster.Admin()), admin: cluster.Kubectl(cluster.Admin()), client: client,
	}
}

// TestAPI runs its subtests on one cluster, because starting a cluster takes longer than most of them. Subtests use their own
// namespaces; those that stop the server come last.
func TestAPI(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t, devcluster.Options{Server: true})
	for _, each := range []struct {
		name string
		test func(*testing.T, *testCluster)
	}{
		{"Discovery", testDiscovery},
		{"LifecycleOfEveryKind", testLifecycle},
		{"RecordsAreReadOnly", testRecords},
		{"CatalogRecordsAreReadOnly", testCatalogRecords},
		{"Explain", testExplain},
		{"FieldValidation", testFieldValidation},
		{"ServerSideApply", testServerSideApply},
		{"UnnamedRules", testRuleNames},
		{"ServerSideApplyOfWorkloads", testCatalogApply},
		{"DryRun", testDryRun},
		{"Wait", testWait},
		{"InvalidInput", testInvalidInput},
		{"Pagination", testPages},
		{"InitialEvents", testInitialEvents},
		{"WatchSelectors", testSelectors},
		{"ForeignContinueToken", testForeignToken},
		{"RBAC", testRBAC},
		{"DocumentedRoles", testRoles},
		{"RulePermissions", testRulePermissions},
		{"CatalogPermissions", testCatalogPermissions},
		{"PipelinePermissions", testPipelinePermissions},
		{"CatalogEdits", testEdits},
		{"EnvironmentEdits", testEnvironmentEdits},
		{"EnvironmentPlacement", testEnvironmentPlacement},
		{"Requests", testRequests},
		{"Pipelines", testPipelines},
		{"RecordRequests", testRecordRequests},
		{"Retry", testRetry},
		{"RequestPermissions", testRequestPermissions},
		{"EnvironmentRequests", testEnvironmentRequests},
		{"EnvironmentRequestPermissions", testEnvironmentRequestPermissions},
		{"NamespaceDeletion", testNamespaceDeletion},
		{"GarbageCollection", testGarbageCollection},
		{"Restart", testRestart},
		{"Crash", testCrash},
		{"ResumeAfterRestart", testResumeAfterRestart},
		{"NamespaceDeletionWithoutServer", testNamespaceDeletionWithoutServer},
		{"BreakGlass", testBreakGlass},
	} {
		t.Run(each.name, func(t *testing.T) {
			each.test(t, s)
			if err := s.ControllerManagerHealthy(t.Context()); err != nil {
				t.Errorf("kube-controller-manager: %v", err)
			}
		})
	}
}

// resource returns the resource of one of the server's kinds.
func resource(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "configbutler.ai", Version: "v1alpha1", Resource: plural}
}

// kubectl runs kubectl as the administrator and fails the test if it fails.
func (s *testCluster) kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := s.admin.Run(t.Context(), arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// apply applies a manifest as the administrator.
func (s *testCluster) apply(t *testing.T, manifest string, arguments ...string) string {
	t.Helper()
	out, err := s.admin.Feed(t.Context(), manifest, append([]string{"apply", "-f", "-"}, arguments...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// namespace creates a namespace for a test.
func (s *testCluster) namespace(t *testing.T, name string) string {
	t.Helper()
	s.CreateNamespace(t, name)
	return name
}

// jsonpath reads one value of an object, which is given as for kubectl get: its kind, its name, and -n with its namespace.
func (s *testCluster) jsonpath(t *testing.T, path string, object ...string) string {
	t.Helper()
	namespace := ""
	if len(object) > 2 {
		namespace = object[3]
	}
	return s.Field(t, namespace, object[0]+"/"+object[1], path)
}

// contains fails the test unless text contains every part.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

// Manifests of the kinds that users write, for a namespace.
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
