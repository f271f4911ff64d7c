// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fidelity

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/test/fidelity/crds"
	"github.com/configbutler/slipstream/test/testkit/sopstest"
)

// TestMirrorMakesTheSameCluster mirrors a cluster, applies the mirror to an empty one, and
// compares the two clusters and their mirrors. Then it restores the first one after changes.
func TestMirrorMakesTheSameCluster(t *testing.T) {
	definitions, err := crds.Definitions(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	original := newTestCluster(t, key.Recipient().String())
	original.fill(t, definitions)
	original.mirrored(t)
	tree := original.clone(t)
	want := files(t, filepath.Join(tree, plain))
	openSecrets(t, tree, key.String())

	t.Run("EveryTypeOfThePreset", func(t *testing.T) { everyType(t, want) })
	t.Run("Endpoints", func(t *testing.T) { endpoints(t, want) })
	// The copy ends with its tests: a second cluster would slow down those that restore the first one.
	t.Run("Copied", func(t *testing.T) {
		copied := newTestCluster(t, key.Recipient().String())
		copied.apply(t, tree)
		copied.mirrored(t)
		got := files(t, filepath.Join(copied.clone(t), plain))
		t.Run("Mirror", func(t *testing.T) { sameFiles(t, want, got) })
		t.Run("Live", func(t *testing.T) { sameObjects(t, original.objects(t, tree), copied.objects(t, tree)) })
		t.Run("AppliedAgainToTheOriginal", func(t *testing.T) { original.appliedAgain(t, tree) })
		t.Run("AppliedPlainlyToTheCopy", func(t *testing.T) { copied.appliedPlainly(t, tree) })
		t.Run("Bootstrap", func(t *testing.T) { original.bootstrapped(t, copied) })
	})
	t.Run("Restored", original.restored)
}

// fill applies everything in testdata as a user would.
func (s *testCluster) fill(t *testing.T, definitions []string) {
	t.Helper()
	// The definitions are too long for the annotation of client-side apply.
	apply := []string{"apply", "--server-side"}
	for _, file := range definitions {
		apply = append(apply, "-f", file)
	}
	s.kubectl(t, apply...)
	s.kubectl(t, "apply", "-f", "testdata/builtin/namespaces.yaml")
	s.kubectl(t, "apply", "-f", "testdata/builtin")
	s.kubectl(t, "wait", "crd", "--all", "--for=condition=Established", "--timeout=180s")
	s.eventually(t, "create", "--dry-run=server", "-f", "testdata/custom")
	s.kubectl(t, "create", "-f", "testdata/custom")
	s.settled(t)
}

// settled waits until controllers have updated the objects of the test.
func (s *testCluster) settled(t *testing.T) {
	t.Helper()
	s.kubectl(t, "wait", "clusterrole/aggregated", "--for=jsonpath={.rules[0].verbs}", "--timeout=180s")
	s.kubectl(t, "wait", "-n", "fidelity", "deployment,statefulset,daemonset", "--all", "--for=jsonpath={.status.observedGeneration}",
		"--timeout=180s")
}

// apply applies a tree to an empty cluster.
func (s *testCluster) apply(t *testing.T, tree string) {
	t.Helper()
	folder := filepath.Join(tree, plain)
	apply := []string{"apply", "--server-side", "--recursive", "-f"}
	s.kubectl(t, append(apply, filepath.Join(folder, "core/v1/namespaces"))...)
	s.kubectl(t, append(apply, filepath.Join(folder, "apiextensions.k8s.io"))...)
	s.kubectl(t, "wait", "crd", "--all", "--for=condition=Established", "--timeout=180s")
	s.eventually(t, append(apply, folder)...)
	s.settled(t)
}

// openSecrets checks that encrypted files have the same content as the plain ones, and replaces these by the decrypted ones.
func openSecrets(t *testing.T, tree, key string) {
	t.Helper()
	const secrets = "core/v1/secrets/fidelity"
	for name, file := range files(t, filepath.Join(tree, encrypted, secrets)) {
		decrypted, err := sopstest.Open(t, []byte(file), key)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(tree, plain, secrets, name)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(parse(t, string(content)), parse(t, decrypted)); diff != "" {
			t.Errorf("content of the encrypted %s differs (-plain +decrypted):\n%s", name, diff)
		}
		if err := os.WriteFile(path, []byte(decrypted), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// everyType expects files of the types that a rule without resources selects.
func everyType(t *testing.T, mirror map[string]string) {
	for _, folder := range []string{
		"apps/v1/deployments", "apps/v1/statefulsets", "apps/v1/daemonsets",
		"core/v1/services", "core/v1/configmaps", "core/v1/secrets", "core/v1/serviceaccounts", "core/v1/resourcequotas", "core/v1/limitranges",
		"core/v1/endpoints", "discovery.k8s.io/v1/endpointslices",
		"networking.k8s.io/v1/ingresses", "networking.k8s.io/v1/networkpolicies",
		"rbac.authorization.k8s.io/v1/roles", "rbac.authorization.k8s.io/v1/rolebindings",
		"rbac.authorization.k8s.io/v1/clusterroles", "rbac.authorization.k8s.io/v1/clusterrolebindings",
		"policy/v1/poddisruptionbudgets", "apiextensions.k8s.io/v1/customresourcedefinitions", "apiregistration.k8s.io/v1/apiservices",
		"scheduling.k8s.io/v1/priorityclasses", "storage.k8s.io/v1/storageclasses",
	} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(mirror)), func(path string) bool { return strings.HasPrefix(path, folder+"/") }) {
			t.Errorf("no file in %s", folder)
		}
	}
}

// endpoints expects files of the endpoints that users have created, and none of those that controllers create for Services with a selector.
func endpoints(t *testing.T, mirror map[string]string) {
	want := []string{
		"core/v1/endpoints/fidelity/outside.yaml",
		"discovery.k8s.io/v1/endpointslices/fidelity/outside-1.yaml", "discovery.k8s.io/v1/endpointslices/fidelity/outside-2.yaml",
	}
	var got []string
	for _, path := range slices.Sorted(maps.Keys(mirror)) {
		if strings.Contains(path, "/endpoints") {
			got = append(got, path)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files of endpoints (-want +got):\n%s", diff)
	}
}

// sameFiles compares two mirrors, with a subtest for each file.
func sameFiles(t *testing.T, want, got map[string]string) {
	for _, path := range paths(want, got) {
		t.Run(path, func(t *testing.T) {
			if diff := cmp.Diff(want[path], got[path]); diff != "" {
				t.Errorf("file differs (-original +copy):\n%s", diff)
			}
		})
	}
}

// paths returns the paths of both trees, in order.
func paths[V any](first, second map[string]V) []string {
	all := maps.Clone(first)
	maps.Copy(all, second)
	return slices.Sorted(maps.Keys(all))
}
