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

// partly makes a run that must omit a Secret.
func (s *fixture) partly() syncer.Result {
	s.Helper()
	result, err := s.runner().Run(s.Context(), s.request())
	if err != nil || !result.Complete || len(result.Failures) != 1 || result.Failures[0].Reason != v1alpha1.ReasonPermissionLost ||
		!strings.Contains(result.Failures[0].Message, `user "eve" may not get secrets in the namespace production`) {
		s.Fatalf("%v: %+v", err, result)
	}
	return result
}

// TestRightsOfTheEditor revokes the permission of the catalog's editor to read Secrets, and restores it: for an environment with a copy,
// and for a new one.
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
				t.Errorf("password of the copy = %q, want %q", got, has)
			}
			for _, request := range s.cluster.TakeRequests() {
				if strings.Contains(request, "production/secrets") {
					t.Errorf("unexpected request: %s", request)
				}
			}
			if settings := s.cluster.Live("configmaps", environmenttest.Target, "settings"); settings == nil {
				t.Error("other objects were not copied")
			}
			s.checkIndex()

			s.rights.Lose()
			if result := s.sync(); len(result.Failures) > 0 || s.password() != second {
				t.Errorf("failures %v, password of the copy = %q", result.Failures, s.password())
			}
		})
	}
}

// TestRefreshWithoutConsent has the catalog no longer offer a workload, and refreshes the Secret to which it refers: for users with the
// permission to read it, and for others.
func TestRefreshWithoutConsent(t *testing.T) {
	const first, second = "aHVudGVyMg==", "cm90YXRlZA=="
	for name, tt := range map[string]struct {
		lost    string
		want    string
		message string
	}{
		"with the permission": {want: second},
		"without it": {`user "jane": get secrets production`, first, "Failed to sync Secret 'database' from production - the catalog does not " +
			`share it: what it last took from its source does not refer to it, and user "jane" may not get secrets in the namespace production: ` +
			"grant that again"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			environmenttest.Share(s.catalog)
			s.offer(web, worker)
			s.sync()
			s.offer(worker)
			s.put(strings.ReplaceAll(database, first, second))
			s.rights.Lose(tt.lost)
			request := s.request()
			request.Action = v1alpha1.SyncActionCluster
			result, err := s.runner().Run(t.Context(), request)
			if err != nil || !result.Complete || s.password() != tt.want {
				t.Errorf("%v: password of the copy = %q, %+v", err, s.password(), result)
			}
			message := ""
			for _, failure := range result.Failures {
				message += failure.Message
			}
			if message != tt.message {
				t.Errorf("failures = %q", message)
			}
			s.checkIndex()
		})
	}
}
