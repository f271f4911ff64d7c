// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// testUninstall uninstalls a release, installs it again with the kept volume, and deletes the APIService of a stopped server.
func testUninstall(t *testing.T, s *testCluster) {
	defer s.remove(t)
	s.Apply(t, restrictedNamespace)
	notes := s.release(t)
	m := s.newMirror(t, "uninstalled")
	m.expectWorking(t)
	s.check(t, s.Admin(), checkedGood, "ok       attribution", "--timeout=5m")
	s.checkRefuses(t)
	s.followNotes(t, notes)
	uid := s.uid(t, m.namespace)

	s.do(t, "", s.helm, "uninstall", "slipstream", "-n", namespace, "--wait")
	s.noPods(t)
	if left := s.left(t); len(left) > 0 {
		t.Errorf("objects left in the cluster: %v", left)
	}
	kept := strings.Fields(s.Run(t, "get", "all,pvc", "-n", namespace, "-o", "name"))
	if want := []string{"pod/slipstream-check", "persistentvolumeclaim/slipstream"}; !slices.Equal(kept, want) {
		t.Errorf("objects kept in the namespace: %v, want the Pod of helm test and the claim, %v", kept, want)
	}
	s.check(t, s.Admin(), checkedBad, "v1alpha1.configbutler.ai is not registered")
	s.healthy(t)

	s.release(t)
	if now := s.uid(t, m.namespace); now != uid {
		t.Errorf("uid of an object after the second installation = %s, want %s", now, uid)
	}
	m.expectWorking(t)
	s.breakGlass(t)
	m.expectWorking(t)
	s.replacesInterrupted(t)
	s.uninstallInterrupted(t)
}

// noPods waits until no Pod of the server runs.
func (s *testCluster) noPods(t *testing.T) {
	t.Helper()
	s.Run(t, "wait", "pods", "-n", namespace, "-l", "app.kubernetes.io/component=server", "--for=delete", "--timeout=10m")
}

// stop scales the server down and keeps its API registered.
func (s *testCluster) stop(t *testing.T) {
	t.Helper()
	s.Run(t, "scale", "deployment/slipstream", "-n", namespace, "--replicas=0")
	s.noPods(t)
	s.Run(t, "wait", apiService, "--for=condition=Available=false", "--timeout=10m")
}

// uid returns the uid of an object of the server.
func (s *testCluster) uid(t *testing.T, namespace string) string {
	t.Helper()
	return s.Run(t, "get", "gitrepoconfig/main", "-n", namespace, "-o", "jsonpath={.metadata.uid}")
}

// left returns the objects of the chart outside of the release's namespace.
func (s *testCluster) left(t *testing.T) []string {
	t.Helper()
	kinds := "apiservices,validatingwebhookconfigurations,clusterroles,clusterrolebindings"
	ours := s.Run(t, "get", kinds, "-l", "app.kubernetes.io/name=slipstream", "-o", "name")
	elsewhere := s.Run(t, "get", "roles,rolebindings", "-A", "-l", "app.kubernetes.io/name=slipstream", "-o", "name")
	all := s.Run(t, "get", "apiservices", "-o", "name")
	if strings.Contains(all, "configbutler.ai") {
		ours += all
	}
	return strings.Fields(ours + elsewhere)
}

// breakGlass checks that a stopped server blocks the deletion of namespaces, and that deleting its APIService unblocks it without harm:
// the next upgrade restores it.
func (s *testCluster) breakGlass(t *testing.T) {
	t.Helper()
	s.stop(t)
	s.check(t, s.Admin(), checkedBad, "no Pod is ready")
	s.interruptCheck(t)
	s.Run(t, "create", "namespace", "doomed")
	s.Run(t, "delete", "namespace", "doomed", "--wait=false")
	mirrortest.Eventually(t, "the namespace reports that it waits for the API", func(ctx context.Context) error {
		const failure = `jsonpath={.status.conditions[?(@.type=="NamespaceDeletionDiscoveryFailure")].message}`
		message, err := s.Administrator.Run(ctx, "get", "namespace/doomed", "-o", failure)
		if err == nil && !strings.Contains(message, "configbutler.ai") {
			err = fmt.Errorf("message = %q", message)
		}
		return err
	})
	s.Run(t, "delete", apiService)
	s.Run(t, "wait", "namespace/doomed", "--for=delete", "--timeout=10m")
	s.release(t)
}
