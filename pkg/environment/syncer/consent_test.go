// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/environment/syncer"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
)

// password returns the content of the copied Secret, empty if it was not copied.
func (s *fixture) password() string {
	s.Helper()
	live := s.cluster.Live("secrets", environmenttest.Target, "database")
	if live == nil {
		return ""
	}
	password, _, err := unstructured.NestedString(live.Object, "data", "password")
	if err != nil {
		s.Fatal(err)
	}
	return password
}

// partly makes a run that is expected to leave out a Secret.
func (s *fixture) partly() syncer.Result {
	s.Helper()
	result, err := s.runner().Run(s.Context(), s.request())
	if err != nil || !result.Complete || len(result.Failures) != 1 || result.Failures[0].Reason != v1alpha1.ReasonPermissionLost ||
		!strings.Contains(result.Failures[0].Message, `user "eve" may not get secrets in the namespace production`) {
		s.Fatalf("%v: %+v", err, result)
	}
	return result
}

// TestRightsOfTheEditor takes the right to read Secrets from the catalog's editor, and gives it back: in an environment that has a
// copy, and in one that is new.
func TestRightsOfTheEditor(t *testing.T) {
	const first, second = "aHVudGVyMg==", "cm90YXRlZA=="
	for name, has := range map[string]string{"an environment with a copy": first, "a new environment": ""} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			environmenttest.Share(s.catalog)
			s.offer(web, worker)
			if has != "" {
				s.sync()
			}
			s.rights.Lose("get secrets production")
			s.put(strings.ReplaceAll(database, first, second))
			s.next()
			s.cluster.TakeRequests()
			s.partly()
			if got := s.password(); got != has {
				t.Errorf("the copy has %q, want %q", got, has)
			}
			for _, request := range s.cluster.TakeRequests() {
				if strings.Contains(request, "production/secrets") {
					t.Errorf("requested: %s", request)
				}
			}
			if settings := s.cluster.Live("configmaps", environmenttest.Target, "settings"); settings == nil {
				t.Error("the rest has not been copied")
			}
			s.checkIndex()

			s.rights.Lose()
			if result := s.sync(); len(result.Failures) > 0 || s.password() != second {
				t.Errorf("failures %v, the copy has %q", result.Failures, s.password())
			}
		})
	}
}
