// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit"
)

// noted sets an annotation that the test ignores.
func noted(value string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{"note": value}) }
}

func TestIgnoredFieldsMakeNoCommit(t *testing.T) {
	const file = "main:clusters/a/core/v1/configmaps/shop/a.yaml"
	rule := v1alpha1.IgnoreRule{Target: v1alpha1.IgnoreTarget{Kind: "configmap"}, Fields: []string{"/metadata/annotations/note"}}
	s := newFixture(t, perChange, onBranch("other", "main", "b"), func(s *fixture) {
		s.in.destinations[0].Spec.Ignore = []v1alpha1.IgnoreRule{rule}
	})
	s.idle()
	shows := func(text string, want bool) {
		t.Helper()
		testkit.Eventually(t, fmt.Sprintf("%q in the file: %v", text, want), func() error {
			content, err := s.run("show", file)
			if err == nil && strings.Contains(content, text) != want {
				err = errors.New(content)
			}
			return err
		})
	}
	s.cluster.put(configMap("a"), "one", noted("first"))
	s.holds("main", "b", inShop) // the other destination has all fields
	shows("value: one", true)
	shows("note", false)
	folder := func() string { return s.mustRun("rev-parse", "main:clusters/a") }
	s.idle()
	before := folder()
	s.cluster.put(configMap("a"), "one", noted("second"))
	s.holds("main", "b", inShop)
	s.idle()
	if after := folder(); after != before {
		t.Errorf("change of an ignored field was committed: %s", s.mustRun("diff", before, after))
	}
	s.cluster.put(configMap("a"), "two", noted("third"))
	shows("value: two", true)
	shows("note", false)
	s.stop()
	s.start()
	s.stays("main", func() {})

	s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Ignore = nil })
	shows("note: third", true)
	s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Ignore = []v1alpha1.IgnoreRule{rule} })
	shows("note", false)
}
