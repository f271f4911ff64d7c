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

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// testManifests installs without helm.
func testManifests(t *testing.T, s *testCluster) {
	t.Run("artifacts/install.yaml", func(t *testing.T) {
		defer s.remove(t)
		kubectl := s.Administrator.Program
		before := s.everything(t)
		s.do(t, "", kubectl, "apply", "--dry-run=client", "-f", "artifacts/install.yaml")
		s.do(t, "", kubectl, "apply", "-f", "artifacts/install.yaml")
		s.available(t)
		s.do(t, "", kubectl, "rollout", "status", "deployment/slipstream", "-n", namespace, "--timeout=10m")
		s.newMirror(t, "by-kubectl").expectWorking(t)
		// A second apply must not change fields that the server writes.
		authority := s.caBundle(t)
		s.do(t, "", kubectl, "apply", "-f", "artifacts/install.yaml")
		if now := s.caBundle(t); now != authority || now == "" {
			t.Errorf("bundle of the APIService after kubectl apply = %q, want %q", now, authority)
		}

		s.do(t, "", kubectl, "delete", "-f", "artifacts/install.yaml", "--timeout=10m")
		s.Run(t, "delete", "namespace", "by-kubectl", "--timeout=10m")
		s.healthy(t)
		s.leavesNothing(t, before)
	})
	t.Run("helm template", func(t *testing.T) {
		defer s.remove(t)
		s.Apply(t, restrictedNamespace)
		manifest := s.rendered(t, "--skip-tests")
		s.do(t, manifest, s.Administrator.Program, "apply", "--dry-run=server", "-f", "-")
		s.do(t, manifest, s.Administrator.Program, "apply", "-f", "-")
		s.available(t)
		s.newMirror(t, "by-template").expectWorking(t)
	})
}

// caBundle returns the bundle of the APIService.
func (s *testCluster) caBundle(t *testing.T) string {
	t.Helper()
	return s.Run(t, "get", apiService, "-o", "jsonpath={.spec.caBundle}")
}

// everything returns the names of all objects of the cluster, except for Events.
func (s *testCluster) everything(t *testing.T) []string {
	t.Helper()
	kinds := slices.DeleteFunc(strings.Fields(s.Run(t, "api-resources", "--verbs=list", "--output=name")), func(kind string) bool {
		return strings.HasPrefix(kind, "events") || kind == "componentstatuses"
	})
	const names = `jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\n"}{end}`
	all := strings.Split(s.Run(t, "get", strings.Join(kinds, ","), "-A", "-o", names), "\n")
	slices.Sort(all)
	return slices.Compact(all)
}

// leavesNothing waits until the cluster has the same objects as before. Controllers delete some of them.
func (s *testCluster) leavesNothing(t *testing.T, before []string) {
	t.Helper()
	mirrortest.Eventually(t, "the cluster has the objects of before", func(context.Context) error {
		if difference := cmp.Diff(before, s.everything(t)); difference != "" {
			return fmt.Errorf("objects differ (- before, + now):\n%s", difference)
		}
		return nil
	})
}

// healthy fails the test unless discovery works without the server's API, and namespaces can be deleted.
func (s *testCluster) healthy(t *testing.T) {
	t.Helper()
	if kinds := s.Run(t, "api-resources", "--output=name"); strings.Contains(kinds, "configbutler.ai") {
		t.Errorf("discovery returned %s", kinds)
	}
	s.Run(t, "create", "namespace", "short-lived")
	s.Run(t, "delete", "namespace", "short-lived", "--timeout=10m")
}
