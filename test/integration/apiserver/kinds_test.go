// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"strings"
	"testing"
)

func testDiscovery(t *testing.T, s *testCluster) {
	out := s.kubectl(t, "api-resources", "--api-group=configbutler.ai", "-o", "wide", "--no-headers", "--sort-by=name")
	writable := "create,delete,deletecollection,get,list,patch,update,watch"
	readable := "delete,deletecollection,get,list,watch"
	want := [][]string{
		{"appcatalogs", "cat", "configbutler.ai/v1alpha1", "true", "AppCatalog", writable, "slipstream"},
		{"catalogworkloads", "cw", "configbutler.ai/v1alpha1", "true", "CatalogWorkload", readable, "slipstream"},
		{"changes", "chg", "configbutler.ai/v1alpha1", "true", "Change", "get,list,watch"},
		{"clusterwatchrules", "cwr", "configbutler.ai/v1alpha1", "false", "ClusterWatchRule", writable, "slipstream"},
		{"environmentdependencies", "envdep", "configbutler.ai/v1alpha1", "true", "EnvironmentDependency", readable, "slipstream"},
		{"environments", "envt", "configbutler.ai/v1alpha1", "true", "Environment", writable, "slipstream"},
		{"gitdestinations", "gd", "configbutler.ai/v1alpha1", "true", "GitDestination", writable, "slipstream"},
		{"gitdestinationstatuses", "gds", "configbutler.ai/v1alpha1", "true", "GitDestinationStatus", readable, "slipstream"},
		{"gitrepoconfigs", "grc", "configbutler.ai/v1alpha1", "true", "GitRepoConfig", writable, "slipstream"},
		{"notificationsinks", "sink", "configbutler.ai/v1alpha1", "true", "NotificationSink", writable, "slipstream"},
		{"syncpipelines", "pipe", "configbutler.ai/v1alpha1", "false", "SyncPipeline", writable, "slipstream"},
		{"syncpolicies", "syncpol", "configbutler.ai/v1alpha1", "false", "SyncPolicy", writable, "slipstream"},
		{"syncstatuses", "ss", "configbutler.ai/v1alpha1", "true", "SyncStatus", readable, "slipstream"},
		{"watchrules", "wr", "configbutler.ai/v1alpha1", "true", "WatchRule", writable, "slipstream"},
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d kinds, want %d:\n%s", len(lines), len(want), out)
	}
	for i, line := range lines {
		if got := strings.Join(strings.Fields(line), " "); got != strings.Join(want[i], " ") {
			t.Errorf("kind = %s\n want %s", got, strings.Join(want[i], " "))
		}
	}
}

func testLifecycle(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "life")
	for _, each := range []struct {
		manifest, kind, name, header, change string
	}{
		{repositoryIn(namespace), "grc", "repo", "NAME URL READY REASON AGE", `{"spec":{"allowedBranches":["main","next"]}}`},
		{destinationIn(namespace), "gd", "dest", "NAME REPOSITORY BRANCH FOLDER READY REASON AGE", `{"spec":{"suspend":true}}`},
		{ruleIn(namespace), "wr", "rule", "NAME DESTINATION TYPES READY REASON AGE", `{"spec":{"destinationRef":{"name":"other"}}}`},
		{clusterRuleFor(namespace), "cwr", namespace, "NAME DESTINATION TYPES READY REASON AGE", `{"spec":{"destinationRef":{"name":"other"}}}`},
		{
			catalogIn(namespace, namespace), "cat", "shop",
			"NAME SOURCE WORKLOADS REVISION LAST-SYNC READY STATE AGE", `{"spec":{"historyLimit":5}}`,
		},
		{environmentIn(namespace), "envt", "alice", "NAME CATALOG TYPE AUTO NAMESPACE STATE REVISION AGE", `{"spec":{"autoSync":true}}`},
		{pipelineOf(namespace), "pipe", namespace, "NAME MODE SINKS OBJECTS PENDING STATE AGE", `{"spec":{"batch":{"maxItems":20}}}`},
		{sinkIn(namespace), "sink", "chat", "NAME TO EVENTS PENDING STATE LAST AGE", `{"spec":{"maxPerMinute":5}}`},
		{policy, "syncpol", "default", "NAME BATCH-WINDOW RETENTION RECORDS SUSPENDED READY REASON AGE", `{"spec":{"batchWindow":"2s"}}`},
	} {
		t.Run(each.kind, func(t *testing.T) {
			at := []string{each.kind, each.name, "-n", namespace}
			s.apply(t, each.manifest)
			table := s.kubectl(t, append([]string{"get"}, at...)...)
			header, _, _ := strings.Cut(table, "\n")
			if got := strings.Join(strings.Fields(header), " "); got != each.header {
				t.Errorf("columns = %s, want %s", got, each.header)
			}
			if got := s.jsonpath(t, "{.metadata.generation}", at...); got != "1" {
				t.Errorf("generation of a new object = %s, want 1", got)
			}
			s.kubectl(t, append([]string{"patch", "--type=merge", "-p", each.change}, at...)...)
			if got := s.jsonpath(t, "{.metadata.generation}", at...); got != "2" {
				t.Errorf("generation after a change = %s, want 2", got)
			}
			s.kubectl(t, append(append([]string{"label"}, at...), "a=b")...)
			if got := s.jsonpath(t, "{.metadata.generation}", at...); got != "2" {
				t.Errorf("generation after a label = %s, want 2", got)
			}
			contains(t, s.kubectl(t, "get", "slipstream", "-A", "-o", "name"), "/"+each.name)
			selected := []string{"get", each.kind, "-n", namespace, "-o", "name", "--field-selector"}
			contains(t, s.kubectl(t, append(selected, "metadata.name="+each.name)...), "/"+each.name)
			if out := s.kubectl(t, append(selected, "metadata.name=another")...); out != "" {
				t.Errorf("selector of another name returned %s", out)
			}
			s.kubectl(t, append([]string{"delete", "--timeout=" + deadline.String()}, at...)...)
		})
	}
}

func testRecords(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "records")
	s.apply(t, repositoryIn(namespace))
	s.apply(t, destinationIn(namespace))
	s.kubectl(t, "wait", "--for=create", "gds/dest", "-n", namespace, "--timeout="+deadline.String())
	header, _, _ := strings.Cut(s.kubectl(t, "get", "gds", "-n", namespace), "\n")
	if got, want := strings.Join(strings.Fields(header), " "), "NAME BRANCH FOLDER COMMIT AGE-OF-COMMIT PENDING OBJECTS STATE"; got != want {
		t.Errorf("columns = %s, want %s", got, want)
	}
	if got := s.jsonpath(t, "{.metadata.ownerReferences[0].kind}", "gds", "dest", "-n", namespace); got != "GitDestination" {
		t.Errorf("owner = %s, want GitDestination", got)
	}
	manifest := "{apiVersion: configbutler.ai/v1alpha1, kind: GitDestinationStatus, metadata: {name: forged, namespace: " + namespace + "}}"
	if _, err := s.admin.Feed(t.Context(), manifest, "create", "-f", "-"); err == nil || !strings.Contains(err.Error(), "MethodNotAllowed") {
		t.Errorf("creating a record: %v, want MethodNotAllowed", err)
	}
	if _, err := s.admin.Run(t.Context(), "label", "gds", "dest", "-n", namespace, "a=b"); err == nil ||
		!strings.Contains(err.Error(), "MethodNotAllowed") {
		t.Errorf("changing a record: %v, want MethodNotAllowed", err)
	}
	s.kubectl(t, "delete", "gds", "dest", "-n", namespace)
}

func testExplain(t *testing.T, s *testCluster) {
	contains(t, s.kubectl(t, "explain", "gitdestination.spec"), "baseFolder\t<string>", "branch\t<string> -required-", "enum: Always, Never")
	contains(t, s.kubectl(t, "explain", "gds.status.lastCommit"), "sha\t<string>")
	contains(t, s.kubectl(t, "explain", "watchrule.spec.rules.resources"), "resources <[]string>")
	contains(t, s.kubectl(t, "explain", "cwr", "--recursive"), "namespaceSelector")
	contains(t, s.kubectl(t, "explain", "cat.spec"), "sourceNamespace\t<string> -required-", "enum: Requester, Shared")
	contains(t, s.kubectl(t, "explain", "cw.status.source"), "resourceVersion\t<string>")
	contains(t, s.kubectl(t, "explain", "envt.spec"), "targetNamespace\t<string> -required-", "enum: Branch, Shared")
	contains(t, s.kubectl(t, "explain", "envt.spec.syncWindows"), "schedule\t<string> -required-", "enum: Allow, Deny")
	contains(t, s.kubectl(t, "explain", "envt.status"), "pendingRequests\t<[]PendingEnvironmentRequest>", "automatedBy\t<AutomatedBy>")
	contains(t, s.kubectl(t, "explain", "envdep.status"), "keys\t<[]string>", "enum: ConfigMap, Secret, Service, ServiceAccount",
		"type is ConfigMap, Secret, Service or ServiceAccount.")
	contains(t, s.kubectl(t, "explain", "ss.status"), "state\t<string> -required-", "workloadNames\t<[]string>")
	contains(t, s.kubectl(t, "explain", "pipe.spec.sinks.http"), "url\t<string> -required-", "enum: CloudEvents, ClusterWhisperer, DotAI")
	contains(t, s.kubectl(t, "explain", "pipe.status"), "pendingRequests\t<[]PendingPipelineRequest>", "editedBy\t<AutomatedBy>")
	contains(t, s.kubectl(t, "explain", "sink.spec"), "linkTemplate\t<string>", "enum: Error, Info, Warning", "slack\t<SlackSink>")
	contains(t, s.kubectl(t, "explain", "sink.spec.email"), "host\t<string> -required-", "enum: Implicit, None, StartTLS")
	contains(t, s.kubectl(t, "explain", "syncpol.spec.retention"), "keepPerSubject\t<integer>")
}

func testFieldValidation(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "strict")
	misspelt := strings.Replace(destinationIn(namespace), "branch: main", "branch: main, baseFloder: x", 1)
	_, err := s.admin.Feed(t.Context(), misspelt, "apply", "-f", "-")
	if err == nil || !strings.Contains(err.Error(), `unknown field "spec.baseFloder"`) {
		t.Errorf("misspelt field: %v, want an error that names it", err)
	}
	s.apply(t, misspelt, "--validate=false")
}

func testServerSideApply(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "ssa")
	s.apply(t, repositoryIn(namespace))
	s.apply(t, ruleIn(namespace), "--server-side", "--field-manager=one")
	for _, each := range []struct{ old, new, field string }{
		{"name: some", "name: more", ".spec.rules"},
		{"name: dest}", "name: theirs}", ".spec.destinationRef"},
	} {
		conflicting := strings.Replace(ruleIn(namespace), each.old, each.new, 1)
		_, err := s.admin.Feed(t.Context(), conflicting, "apply", "-f", "-", "--server-side", "--field-manager=two")
		if err == nil || !strings.Contains(err.Error(), `conflict with "one": `+each.field) {
			t.Errorf("taking another manager's %s: %v, want a conflict", each.field, err)
		}
	}
	s.apply(t, destinationIn(namespace)+"status: {observedGeneration: 99}\n", "--server-side", "--field-manager=one")
	if got := s.jsonpath(t, "{.status.observedGeneration}", "gd", "dest", "-n", namespace); got == "99" {
		t.Error("main endpoint accepted a status")
	}
}

// testRuleNames applies rules without names. A list replaces the previous one, with client-side and server-side apply.
func testRuleNames(t *testing.T, s *testCluster) {
	lists := []struct{ rules, want string }{
		{`[{resources: [configmaps]}]`, `[{"resources":["configmaps"]}]`},
		{`[{resources: [configmaps]}, {resources: [services]}]`, `[{"resources":["configmaps"]},{"resources":["services"]}]`},
		{
			`[{name: net, resources: [services]}, {resources: [configmaps]}]`,
			`[{"name":"net","resources":["services"]},{"resources":["configmaps"]}]`,
		},
		{
			`[{name: a, resources: [secrets]}, {name: net, resources: [services]}]`,
			`[{"name":"a","resources":["secrets"]},{"name":"net","resources":["services"]}]`,
		},
		{`[{resources: [services]}]`, `[{"resources":["services"]}]`},
	}
	for _, way := range []struct {
		name      string
		arguments []string
	}{
		{"client", nil},
		{"server", []string{"--server-side"}},
	} {
		namespace := s.namespace(t, "names-"+way.name)
		for _, list := range lists {
			manifest := strings.Replace(ruleIn(namespace), `[{name: some, apiGroups: [""], resources: [configmaps]}]`, list.rules, 1)
			s.apply(t, manifest, way.arguments...)
			if got := s.jsonpath(t, "{.spec.rules}", "wr", "rule", "-n", namespace); got != list.want {
				t.Errorf("rules after %s-side apply of %s = %s", way.name, list.rules, got)
			}
		}
		manifest := strings.ReplaceAll(clusterRuleFor(namespace), "name: crds, ", "")
		for range 2 {
			s.apply(t, manifest, way.arguments...)
		}
		s.kubectl(t, "delete", "cwr", namespace)
	}
}

func testDryRun(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "dry")
	contains(t, s.apply(t, repositoryIn(namespace), "--dry-run=server"), "server dry run")
	if out := s.kubectl(t, "get", "grc", "-n", namespace, "-o", "name"); out != "" {
		t.Errorf("a dry run stored %s", out)
	}
}

func testWait(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "waiting")
	s.apply(t, ruleIn(namespace))
	s.kubectl(t, "wait", "--for=condition=Stalled", "wr/rule", "-n", namespace, "--timeout="+deadline.String())
	deleted := make(chan error, 1)
	go func() {
		_, err := s.admin.Run(t.Context(), "wait", "--for=delete", "wr/rule", "-n", namespace, "--timeout="+deadline.String())
		deleted <- err
	}()
	s.kubectl(t, "delete", "wr", "rule", "-n", namespace)
	if err := <-deleted; err != nil {
		t.Error(err)
	}
}

func testInvalidInput(t *testing.T, s *testCluster) {
	namespace := s.namespace(t, "invalid")
	for _, each := range []struct{ name, manifest, old, new, want string }{
		{"a folder above the root", destinationIn(namespace), "clusters/invalid", "../elsewhere", "spec.baseFolder"},
		{"an unknown scheme", repositoryIn(namespace), "https://", "gopher://", "spec.repoUrl"},
		{"a rule that selects nothing", ruleIn(namespace), `[{name: some, apiGroups: [""], resources: [configmaps]}]`, "[]", "spec.rules"},
		{"a namespace of Kubernetes", environmentIn(namespace), namespace + "-alice", "kube-system", "spec.targetNamespace"},
		{"a branch of nothing", environmentIn(namespace), "createNamespace: true", "type: Branch", "spec.branchWorkloads"},
		{"a sink with credentials in its URL", pipelineOf(namespace), "https://", "https://jane:hush@", "spec.sinks[0].http.url"},
		{"a webhook with credentials in its URL", sinkIn(namespace), "https://", "https://jane:hush@", "spec.webhook.url"},
		{"a sink for another namespace", sinkIn(namespace), "events: [Failed]", "namespaces: [default]", "spec.namespaces"},
		{"an unknown operation", ruleIn(namespace), "name: some", "name: some, operations: [READ]", "spec.rules[0].operations[0]"},
	} {
		manifest := strings.Replace(each.manifest, each.old, each.new, 1)
		if _, err := s.admin.Feed(t.Context(), manifest, "apply", "-f", "-"); err == nil || !strings.Contains(err.Error(), each.want) {
			t.Errorf("%s: %v, want an error about %s", each.name, err, each.want)
		}
	}
}
