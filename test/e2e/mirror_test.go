// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

func TestMirror(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t, devcluster.Options{})
	for name, test := range map[string]func(*testing.T, *testCluster){
		"ConfigMapCreatedUpdatedDeleted":       configMapLife,
		"RuleCreatedAndDeleted":                ruleLife,
		"CustomResourceInstalledWhileRunning":  customResources,
		"CustomResourceDefinitionsAreMirrored": definitions,
		"BadInput":                             badInput,
		"UserInterface":                        userInterface,
		"AccessRules":                          access,
		"UnmanagedFilesPreserved":              foreignFiles,
		"ComparedOnRequest":                    comparedOnRequest,
		"RefusedPushes":                        refusedPushes,
		"DeniedRules":                          deniedRules,
		"FolderOfAnotherOwner":                 ownership,
		"IgnoredFields":                        ignoredFields,
		"CredentialsRotated":                   rotatedCredentials,
		"HistoryRewritten":                     rewrittenHistory,
		"RemoteQuotaFull":                      fullQuota,
		"RemoteDownInMidBurst":                 remoteDown,
		"ConcurrentPushes":                     busyBranch,
		"NamespaceDeleted":                     namespaceDeleted,
		"ReadingThePast":                       readingThePast,
		"FirstSteps":                           firstSteps,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

func configMapLife(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "life")
	m.Watch(t, "config", "configmaps")

	s.Run(t, "create", "configmap", "web", "-n", "life", "--from-literal=color=red")
	m.Holds(t, m.ConfigMapPath("web"), "color: red\n")
	first := m.Commits(t)

	s.Run(t, "patch", "configmap", "web", "-n", "life", "-p", `{"data":{"color":"blue"}}`)
	m.Holds(t, m.ConfigMapPath("web"), "color: blue\n")

	// A write without a change of content makes no commit. The commit of the deletion proves that it has been processed.
	s.Run(t, "patch", "configmap", "web", "-n", "life", "-p", `{"data":{"color":"blue"}}`)
	s.Run(t, "annotate", "configmap", "web", "-n", "life", "deployment.kubernetes.io/revision=7")

	s.Run(t, "delete", "configmap", "web", "-n", "life")
	m.Lacks(t, m.ConfigMapPath("web"))

	if log, err := m.Git(t.Context(), "log", "--format=%s", "-3", "main"); err != nil || log !=
		"[DELETE] v1/configmaps life/web\n[UPDATE] v1/configmaps life/web\n[CREATE] v1/configmaps life/web\n" {
		t.Errorf("after %s commits the log is (%v):\n%s", first, err, log)
	}
	trailers, err := m.Git(t.Context(), "log", "-1", "--format=%(trailers)", "main")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"X-ConfigButler-Destination: life/main", "X-ConfigButler-Operation: DELETE", "X-ConfigButler-ClusterUID: "} {
		if !strings.Contains(trailers, want) {
			t.Errorf("the trailers lack %q:\n%s", want, trailers)
		}
	}
	m.Intact(t)
}

func ruleLife(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "rules")
	s.ConfigMap(t, "rules", "before", "a: '1'")
	s.Run(t, "create", "service", "clusterip", "before", "-n", "rules", "--tcp=80")

	m.Watch(t, "config", "configmaps")
	m.Holds(t, m.ConfigMapPath("before"), "a: \"1\"\n")
	m.Watch(t, "services", "services")
	m.Holds(t, "core/v1/services/rules/before.yaml", "kind: Service\n")

	s.Delete(t, "rules", "watchrule/config")
	m.Lacks(t, m.ConfigMapPath("before"))
	m.Holds(t, "core/v1/services/rules/before.yaml", "kind: Service\n")

	s.Delete(t, "rules", "watchrule/services")
	m.Lacks(t, "core/v1/services/rules/before.yaml")
}

// widgets is a type that is not installed at first.
const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%[1]s.example.com}
spec:
  group: %[1]s.example.com
  names: {plural: widgets, singular: widget, kind: Widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-preserve-unknown-fields: true
`

func customResources(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "custom")
	// The rule names a type that does not exist: it reports NoMatchingTypes and waits.
	s.Apply(t, `
apiVersion: configbutler.ai/v1alpha1
kind: WatchRule
metadata: {name: widgets, namespace: custom}
spec:
  destinationRef: {name: main}
  rules:
  - {name: widgets, apiGroups: [custom.example.com], resources: [widgets]}
`)
	s.HasField(t, "custom", "watchrule/widgets", `{.status.conditions[?(@.type=="Ready")].reason}`, "NoMatchingTypes")

	s.Apply(t, fmt.Sprintf(widgets, "custom"))
	s.HaveCondition(t, "", "Established", "crd/widgets.custom.example.com")
	mirrortest.Eventually(t, "a widget can be created", func(ctx context.Context) error {
		_, err := s.Administrator.Feed(ctx, `
apiVersion: custom.example.com/v1
kind: Widget
metadata:
  name: first
  namespace: custom
  labels: {team: shop}
  annotations: {note: "kept"}
spec: {size: 3}
status: {phase: Running}
extra: {beside: spec}
`, "apply", "-f", "-")
		return err
	})
	path := "custom.example.com/v1/widgets/custom/first.yaml"
	m.Holds(t, path, "beside: spec\n")
	if err := s.Try.Patch(t.Context(), "custom", "widget/first", `{"status":{"phase":"Stopped"}}`, "status"); err != nil {
		t.Fatal(err)
	}
	s.Patch(t, "custom", "widget/first", `{"spec":{"size":4}}`)
	m.Holds(t, path, "size: 4\n")
	content, err := m.Git(t.Context(), "show", "main:"+m.Folder+"/"+path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"team: shop\n", "note: kept\n"} {
		if !strings.Contains(content, want) {
			t.Errorf("%q is missing:\n%s", want, content)
		}
	}
	for _, unwanted := range []string{"status", "managedFields", "resourceVersion", "last-applied"} {
		if strings.Contains(content, unwanted) {
			t.Errorf("%q is mirrored:\n%s", unwanted, content)
		}
	}
	s.Ready(t, "custom", "watchrule/widgets")

	s.Delete(t, "", "crd/widgets.custom.example.com")
	m.Lacks(t, path)
}

func definitions(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "definitions", "accessPolicy: {allowClusterRules: true}")
	s.Apply(t, `
apiVersion: configbutler.ai/v1alpha1
kind: ClusterWatchRule
metadata: {name: definitions}
spec:
  destinationRef: {namespace: definitions, name: main}
  rules:
  - {name: definitions, scope: Cluster, resources: [customresourcedefinitions]}
`)
	s.Ready(t, "", "clusterwatchrule/definitions")
	s.Apply(t, fmt.Sprintf(widgets, "defined"))
	path := "apiextensions.k8s.io/v1/customresourcedefinitions/widgets.defined.example.com.yaml"
	m.Holds(t, path, "plural: widgets\n")
	s.Delete(t, "", "crd/widgets.defined.example.com")
	m.Lacks(t, path)
	s.Delete(t, "", "clusterwatchrule/definitions")
}

func foreignFiles(t *testing.T, s *testCluster) {
	m := s.newMirror(t, "foreign")
	clone := t.TempDir()
	url := s.Env(devcluster.EnvGitURL) + "/foreign.git"
	push := func(file, content string) {
		t.Helper()
		script := fmt.Sprintf(`set -e; cd %[1]s
[ -d .git ] || { git init -q -b main .; git remote add origin %[2]s; git config user.name Jane; git config user.email jane@example.com; }
if git ls-remote --exit-code -q origin main >/dev/null; then git fetch -q origin; git reset -q --hard origin/main; fi
mkdir -p "$(dirname %[3]s)"; echo '%[4]s' > %[3]s; git add -A; git commit -qm "Add %[3]s"; git push -q origin HEAD:main`,
			clone, url, file, content)
		if out, err := shell(t.Context(), script); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	push("README.md", "by another user")
	m.Watch(t, "config", "configmaps")
	s.ConfigMap(t, "foreign", "one", "a: '1'")
	m.Holds(t, m.ConfigMapPath("one"), "name: one\n")
	push(m.Folder+"/NOTES.txt", "inside the folder")
	push("other/file.yaml", "beside the folder")
	s.ConfigMap(t, "foreign", "two", "a: '2'")
	m.Holds(t, m.ConfigMapPath("two"), "name: two\n")
	for _, file := range []string{"README.md", m.Folder + "/NOTES.txt", "other/file.yaml"} {
		if _, err := m.Git(t.Context(), "show", "main:"+file); err != nil {
			t.Errorf("file of another user: %v", err)
		}
	}
	if out, err := m.Git(t.Context(), "log", "--merges", "--format=%h", "main"); err != nil || out != "" {
		t.Errorf("merges: %q, %v", out, err)
	}
}
