// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/kube/annotation/annotationtest"
	"github.com/configbutler/slipstream/test/testkit"
)

// TestAnnotationsOfSecretsReachGitEncrypted checks that values in annotations of Secrets are readable neither in Git nor in the store.
func TestAnnotationsOfSecretsReachGitEncrypted(t *testing.T) {
	const value = "Y29ycmVjdCBob3JzZQ==" // correct horse
	copies := map[string]string{"helm.sh/resource-policy": "keep", "name": value}
	for _, key := range slices.Concat(annotationtest.Configurations(), annotationtest.Others()) {
		copies[key] = `{"kind":"Secret","data":{"value":"` + value + `"},"stringData":{"value":"correct horse"}}`
	}
	annotate := func(object *unstructured.Unstructured) { object.SetAnnotations(copies) }
	s := newFixture(t, withSecrets, perChange)
	s.idle()
	s.cluster.put(secret("a"), value, annotate)
	for blob := range maps.Values(s.opened("clusters/a", s.ownKey())) {
		file := s.mustRun("cat-file", "blob", blob)
		for _, key := range append(annotationtest.Others(), "helm.sh/resource-policy") {
			if !strings.Contains(file, key+": ") {
				t.Errorf("file lacks the annotation %s:\n%s", key, file)
			}
		}
	}
	s.git.guard(down)
	copies = maps.Clone(copies)
	copies["example.com/made-up"] = "correct horse"
	s.cluster.put(secret("a"), value, annotate)
	testkit.Eventually(t, "a row", func() error {
		if s.record("main").PendingChanges == 0 {
			return errors.New("none")
		}
		return nil
	})
	s.hides("Y29ycmVjdCBob3JzZQ", "correct horse")
	s.git.guard(nil)
	s.opened("clusters/a", s.ownKey())
	s.hides("Y29ycmVjdCBob3JzZQ", "correct horse")
	s.stays("main", func() { s.cluster.put(secret("a"), value, annotate) })
}
