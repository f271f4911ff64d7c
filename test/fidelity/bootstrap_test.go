// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/fidelity/crds"
)

// bootstrapped has the definitions of Flux and Argo CD in another cluster accept what the plugin prints about the mirror.
func (s *testCluster) bootstrapped(t *testing.T, other *testCluster) {
	definitions, err := crds.Followers(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range definitions {
		other.kubectl(t, "apply", "--server-side", "-f", file)
	}
	other.kubectl(t, "wait", "crd", "--all", "--for=condition=Established", "--timeout=180s")
	for _, namespace := range []string{"flux-system", "argocd"} {
		other.kubectl(t, "create", "namespace", namespace)
	}
	plugin := s.plugin(t)
	for tool, count := range map[string]int{"flux": 2, "argocd": 1} {
		manifests, err := plugin.Run(t.Context(), "bootstrap", tool, "--destination", "mirror/"+encrypted)
		if err != nil {
			t.Fatal(err)
		}
		out, err := other.admin.Feed(t.Context(), manifests, "create", "--validate=strict", "--dry-run=server", "-f", "-")
		if err != nil || strings.Count(out, " created (server dry run)") != count {
			t.Errorf("%s: %v: %s\n%s", tool, err, out, manifests)
		}
	}
}
