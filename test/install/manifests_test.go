// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"testing"
)

// testManifests installs without helm.
func testManifests(t *testing.T, s *stage) {
	t.Run("artifacts/install.yaml", func(t *testing.T) {
		defer s.remove(t)
		kubectl := s.Administrator.Program
		s.do(t, "", kubectl, "apply", "--dry-run=client", "-f", "artifacts/install.yaml")
		s.do(t, "", kubectl, "apply", "-f", "artifacts/install.yaml")
		s.available(t)
		s.do(t, "", kubectl, "rollout", "status", "deployment/slipstream", "-n", namespace, "--timeout=180s")
		s.newMirror(t, "by-kubectl").goesOn(t)
		// What is applied again changes nothing of what the server keeps itself.
		before := s.caBundle(t)
		s.do(t, "", kubectl, "apply", "-f", "artifacts/install.yaml")
		if now := s.caBundle(t); now != before || now == "" {
			t.Errorf("kubectl apply made the authority in the APIService %q, it was %q", now, before)
		}
	})
	t.Run("helm template", func(t *testing.T) {
		defer s.remove(t)
		s.Apply(t, restrictedNamespace)
		manifest := s.rendered(t, "--skip-tests")
		s.do(t, manifest, s.Administrator.Program, "apply", "--dry-run=server", "-f", "-")
		s.do(t, manifest, s.Administrator.Program, "apply", "-f", "-")
		s.available(t)
		s.newMirror(t, "by-template").goesOn(t)
	})
}

// caBundle is the authority in the APIService.
func (s *stage) caBundle(t *testing.T) string {
	t.Helper()
	return s.Run(t, "get", apiService, "-o", "jsonpath={.spec.caBundle}")
}
