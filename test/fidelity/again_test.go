// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"path/filepath"
	"testing"
)

// longestAnnotation is the maximum size of all annotations of an object, in bytes. Client-side apply writes the whole
// object into one.
const longestAnnotation = 256 << 10

// withNulls is the file of an object with null fields. Client-side apply removes a field that is null in the manifest.
const withNulls = "fidelity.example.com/v1/gauges/nulls.yaml"

// appliedAgain applies a mirror to its own cluster, as GitOps tools and users do, and expects no commit.
func (s *testCluster) appliedAgain(t *testing.T, tree string) {
	folder := filepath.Join(tree, plain)
	t.Run("ServerSide", func(t *testing.T) {
		s.unmoved(t, "apply", "--server-side", "--force-conflicts", "--field-manager=kustomize-controller", "--recursive", "-f", folder)
	})
	t.Run("Marked", func(t *testing.T) {
		before := s.commit(t)
		for _, marked := range []string{"apps", "core/v1/configmaps", "core/v1/secrets", "fidelity.example.com", "cert-manager.io"} {
			files := filepath.Join(folder, marked)
			s.kubectl(t, "label", "--overwrite", "--recursive", "-f", files, "kustomize.toolkit.fluxcd.io/name=apps",
				"argocd.argoproj.io/instance=apps")
			s.kubectl(t, "annotate", "--overwrite", "--recursive", "-f", files, "argocd.argoproj.io/tracking-id=apps:apps/Deployment:shop/web")
		}
		s.still(t, before)
	})
	t.Run("ClientSide", func(t *testing.T) { s.appliedPlainly(t, tree) })
}

// appliedPlainly applies a mirror with client-side apply and another field manager.
func (s *testCluster) appliedPlainly(t *testing.T, tree string) {
	folder := filepath.Join(tree, plain)
	arguments := []string{"apply", "--field-manager=argocd-controller"}
	for path, content := range files(t, folder) {
		if len(content) < longestAnnotation && path != withNulls {
			arguments = append(arguments, "-f", filepath.Join(folder, filepath.FromSlash(path)))
		}
	}
	s.unmoved(t, arguments...)
}

// unmoved runs kubectl and expects no commit.
func (s *testCluster) unmoved(t *testing.T, arguments ...string) {
	t.Helper()
	before := s.commit(t)
	s.kubectl(t, arguments...)
	s.still(t, before)
}

// still expects no commit after the given one.
func (s *testCluster) still(t *testing.T, before string) {
	t.Helper()
	s.mirrored(t)
	if after := s.commit(t); after != before {
		t.Errorf("unexpected commit:\n%s", s.git(t, "diff", before, after))
	}
}
