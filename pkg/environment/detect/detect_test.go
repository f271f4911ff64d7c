// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// begunWatches are the types that a process of begunFixture watches.
var begunWatches = []string{"production/configmaps", "production/secrets", "production/serviceaccounts", "production/services"}

// begunFixture returns a fixture with two environments that have copies of the objects of production, and a running
// process.
func begunFixture(t testing.TB) *fixture {
	t.Helper()
	s := newFixture(t)
	for _, name := range []string{"settings", "queue", "secret-database", "service-web", "account-web"} {
		s.put(name, "1")
	}
	s.add("alice")
	s.add("bob")
	s.sync("alice", "settings", "queue", "secret-database", "service-web", "account-web")
	s.sync("bob", "settings")
	s.start(0)
	s.watching(begunWatches...)
	return s
}

func TestChanges(t *testing.T) {
	tests := map[string]struct {
		do   func(s *fixture)
		want []string
	}{
		"nothing":                {func(*fixture) {}, nil},
		"objects without copies": {func(s *fixture) { s.put("other", "1"); s.put("secret-other", "1") }, nil},
		"of one environment":     {func(s *fixture) { s.put("queue", "2") }, []string{"alice Pending* Changed ConfigMap queue"}},
		"of two environments": {
			func(s *fixture) { s.put("settings", "2") },
			[]string{"alice Pending* Changed ConfigMap settings", "bob Pending* Changed ConfigMap settings"},
		},
		"a secret":   {func(s *fixture) { s.put("secret-database", "2") }, []string{"alice Pending* Changed Secret secret-database"}},
		"a service":  {func(s *fixture) { s.put("service-web", "2") }, []string{"alice Pending* Changed Service service-web"}},
		"an account": {func(s *fixture) { s.put("account-web", "2") }, []string{"alice Pending* Changed ServiceAccount account-web"}},
		"a deletion": {func(s *fixture) { s.remove("queue") }, []string{"alice Pending* Removed ConfigMap queue"}},
		"several": {
			func(s *fixture) { s.put("queue", "2"); s.put("settings", "2"); s.put("queue", "3") },
			[]string{"alice Pending* Changed ConfigMap queue Changed ConfigMap settings", "bob Pending* Changed ConfigMap settings"},
		},
		"deleted and recreated": {func(s *fixture) { s.remove("queue"); s.put("queue", "1") }, nil},
		"changed and back":      {func(s *fixture) { s.put("queue", "2"); s.put("queue", "1") }, nil},
		"what the cluster writes": {func(s *fixture) {
			s.put("queue", "1", func(o *unstructured.Unstructured) {
				o.SetManagedFields(nil)
				o.SetGeneration(3)
				o.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"})
			})
		}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := begunFixture(t)
			test.do(s)
			s.stays(test.want...)
			s.restart()
			s.stays(test.want...)
		})
	}
}

// TestLaterChanges makes changes after some have been recorded.
func TestLaterChanges(t *testing.T) {
	const recorded = "alice Pending* Changed ConfigMap queue"
	tests := map[string]struct {
		do   func(s *fixture)
		want []string
	}{
		"of the same": {func(s *fixture) { s.put("queue", "3") }, []string{recorded}},
		"of another":  {func(s *fixture) { s.put("service-web", "2") }, []string{recorded + " Changed Service service-web"}},
		"back":        {func(s *fixture) { s.put("queue", "1") }, []string{"alice Superseded Changed ConfigMap queue"}},
		"a deletion":  {func(s *fixture) { s.remove("queue") }, []string{"alice Pending* Removed ConfigMap queue"}},
		"deleted and back": {
			func(s *fixture) {
				s.remove("queue")
				s.expectRecords("alice Pending* Removed ConfigMap queue")
				s.put("queue", "1")
			}, []string{"alice Superseded Removed ConfigMap queue"},
		},
		"while it runs": {func(s *fixture) {
			s.move("alice", v1alpha1.SyncStateInProgress)
			s.put("secret-database", "2")
		}, []string{"alice InProgress Changed ConfigMap queue", "alice Pending* Changed Secret secret-database"}},
		"while it is tried again": {func(s *fixture) {
			s.move("alice", v1alpha1.SyncStateRetrying)
			s.put("secret-database", "2")
		}, []string{"alice Retrying Changed ConfigMap queue", "alice Pending* Changed Secret secret-database"}},
		"after a failure": {func(s *fixture) {
			s.move("alice", v1alpha1.SyncStateFailed)
			s.put("secret-database", "2")
		}, []string{"alice Failed* Changed ConfigMap queue Changed Secret secret-database"}},
		"back after a failure": {func(s *fixture) {
			s.move("alice", v1alpha1.SyncStateFailed)
			s.put("queue", "1")
		}, []string{"alice Failed* Changed ConfigMap queue"}},
		"when manual intervention is needed": {func(s *fixture) {
			s.move("alice", v1alpha1.SyncStateManualIntervention)
			s.put("secret-database", "2")
		}, []string{"alice ManualIntervention* Changed ConfigMap queue Changed Secret secret-database"}},
		"dismissed": {func(s *fixture) { s.dismiss("alice") }, []string{"alice Dismissed Changed ConfigMap queue"}},
		"dismissed, and changed again": {func(s *fixture) {
			s.dismiss("alice")
			s.put("queue", "3")
		}, []string{"alice Dismissed Changed ConfigMap queue", "alice Pending* Changed ConfigMap queue"}},
		"dismissed, and back": {func(s *fixture) {
			s.dismiss("alice")
			s.put("queue", "1")
		}, []string{"alice Dismissed Changed ConfigMap queue"}},
		"dismissed, back, and changed again": {func(s *fixture) {
			s.dismiss("alice")
			s.put("queue", "1")
			s.arrived(2)
			s.rests()
			s.put("queue", "2")
		}, []string{"alice Dismissed Changed ConfigMap queue", "alice Pending* Changed ConfigMap queue"}},
		"a run of the catalog has brought it": {func(s *fixture) {
			s.sync("alice", "settings", "queue", "secret-database", "service-web", "account-web")
		}, []string{"alice Superseded Changed ConfigMap queue"}},
		"nothing refers to it any more": {func(s *fixture) { s.sync("alice", "settings") }, []string{"alice Superseded Changed ConfigMap queue"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := begunFixture(t)
			s.put("queue", "2")
			s.stays(recorded)
			test.do(s)
			s.stays(test.want...)
			s.restart()
			s.stays(test.want...)
		})
	}
}
