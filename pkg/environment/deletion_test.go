// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
	"github.com/configbutler/slipstream/pkg/syncstatus"
	"github.com/configbutler/slipstream/test/testkit/fakeapi"
)

func TestPermissionLost(t *testing.T) {
	s := newFixture(t, automatic)
	s.rights.Lose("create deployments " + environmenttest.Target)
	s.start(0)
	s.held(v1alpha1.ReasonPermissionLost)
	s.expectRecords()
	s.rights.Lose()
	s.applied(1)
	s.held("")

	// It is also reported if nothing is pending.
	s.rights.Lose("create deployments " + environmenttest.Target)
	s.held(v1alpha1.ReasonPermissionLost)
	s.stalled(v1alpha1.ReasonPermissionLost)
	s.rights.Lose()
	s.held("")
	s.expectRecords("Environment auto.shop-r1.1 Completed r1")
}

// TestRightToCreateTheTarget revokes the permission of the user of automatic syncs to create namespaces. It is only
// needed if the target is missing.
func TestRightToCreateTheTarget(t *testing.T) {
	for _, there := range []bool{true, false} {
		t.Run(fmt.Sprintf("there %t", there), func(t *testing.T) {
			s := newFixture(t, automatic, func(e *v1alpha1.Environment) { e.Spec.CreateNamespace = true })
			s.rights.Lose("create namespaces ")
			if !there {
				s.dropNamespace(environmenttest.Target)
				// No controller creates the account of Pods.
				s.cluster.Put(environmenttest.Object(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: shop-alice}}"))
			}
			s.start(0)
			if !there {
				s.held(v1alpha1.ReasonPermissionLost)
				s.expectRecords()
				s.rights.Lose()
			}
			s.applied(1)
		})
	}
}

func TestTargetIsDeleted(t *testing.T) {
	for _, create := range []bool{false, true} {
		t.Run(fmt.Sprintf("createNamespace %t", create), func(t *testing.T) {
			s := newFixture(t, func(e *v1alpha1.Environment) { e.Spec.CreateNamespace = create })
			s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
			s.start(0)
			s.applied(1)
			s.dropNamespace(environmenttest.Target)
			s.stalled(v1alpha1.ReasonTargetNotFound)
			if create {
				// No controller creates the account of Pods.
				s.cluster.Put(environmenttest.Object(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: shop-alice}}"))
			}
			s.ask("two", "jane", v1alpha1.SyncRequestSpec{})
			if !create {
				s.expectRecords("Environment one Completed by jane r1", "Environment two Pending by jane r1")
				s.addNamespace(environmenttest.Target)
			}
			s.expectRecords("Environment one Completed by jane r1", "Environment two Completed by jane r1")
			s.has("web:1 worker:1")
		})
	}
}

func TestObstacles(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare func(*fixture)
		reason  string
	}{
		"no catalog": {func(s *fixture) {
			s.change(func(e *v1alpha1.Environment) { e.Spec.CatalogRef.Name = "none" })
		}, v1alpha1.ReasonCatalogNotFound},
		"the target of an older one": {func(s *fixture) {
			s.change(func(e *v1alpha1.Environment) { e.CreationTimestamp = metav1.NewTime(noon.Add(time.Minute)) })
			older := environmenttest.Environment()
			older.Name, older.UID = "bob", "33333333-3333-3333-3333-333333333333"
			s.addEnvironment(older)
		}, v1alpha1.ReasonTargetTaken},
		"production": {func(s *fixture) {
			s.addNamespace(environmenttest.Production)
			s.change(func(e *v1alpha1.Environment) { e.Spec.TargetNamespace = environmenttest.Production })
		}, v1alpha1.ReasonTargetIsSource},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			tt.prepare(s)
			s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
			s.start(0)
			s.stalled(tt.reason)
			s.pass(30)
			if lines := s.recordLines(); !slices.Contains(lines, "Environment one Pending by jane r1") &&
				!slices.Contains(lines, "Environment one Pending by jane") {
				t.Errorf("records %q", lines)
			}
			s.has("")
		})
	}
}

func TestEnd(t *testing.T) {
	const ttl = 8 * time.Hour // long after the first sync
	s := newFixture(t, automatic, func(e *v1alpha1.Environment) { e.Spec.TTL = &metav1.Duration{Duration: ttl} })
	s.leave("Deployment web is still there")
	s.start(0)
	s.applied(1)
	s.clock.SetTime(noon.Add(ttl))
	s.reaches("the environment has expired", func(e *v1alpha1.Environment) bool {
		ready := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady)
		return e.DeletionTimestamp != nil && ready.Reason == v1alpha1.ReasonExpired && strings.Contains(ready.Message, "Deployment web")
	})
	if at := s.environment("alice").DeletionTimestamp; at.Time.Before(noon.Add(ttl)) {
		t.Errorf("deleted at %s", at)
	}
	if state := s.environment("alice").Status.State; state != "Deleting" {
		t.Errorf("state %q", state)
	}
	s.leave()
	s.eventually("the environment is deleted", func() error {
		if fakeapi.Get[*v1alpha1.Environment](s.api, environmenttest.Teams, "alice") != nil {
			return fmt.Errorf("environment still exists")
		}
		return nil
	})
	if !slices.Equal(s.removed, []string{"alice"}) {
		t.Errorf("removed %q", s.removed)
	}
	if events := strings.Join(s.events.Lines(), "\n"); !strings.Contains(events, "Normal Expired") ||
		!strings.Contains(events, "Normal Synced") {
		t.Errorf("Events:\n%s", events)
	}
}

// TestFailedDeletionIsReported checks that the condition has the reason while the objects of a deleted environment cannot be removed.
func TestFailedDeletionIsReported(t *testing.T) {
	for name, tt := range map[string]struct {
		failure error
		want    string
	}{
		"refused": {errors.New("delete Deployment web: no"), "the last attempt failed and is retried: delete Deployment web: no"},
		"unreachable": {
			fmt.Errorf("list: %w", &net.OpError{
				Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: 40001}, Addr: &net.TCPAddr{Port: 443}, Err: errors.New("connection reset"),
			}),
			"the last attempt failed and is retried: the API server of the cluster cannot be reached: connection reset",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, automatic)
			s.start(0)
			s.applied(1)
			s.fail(tt.failure)
			fakeapi.Delete[*v1alpha1.Environment](s.api, environmenttest.Teams, "alice")
			s.reaches("the failure is reported", func(e *v1alpha1.Environment) bool {
				ready := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady)
				return ready.Reason == v1alpha1.ReasonProgressing && ready.Message == "The environment is being deleted: "+tt.want
			})
			s.fail(nil)
			s.eventually("the environment is deleted", func() error {
				if fakeapi.Get[*v1alpha1.Environment](s.api, environmenttest.Teams, "alice") != nil {
					return errors.New("environment still exists")
				}
				return nil
			})
		})
	}
}

// TestDeletedWhileItIsSynced checks that the deletion of an environment does not wait for its sync, and that no record
// stays unfinished.
func TestDeletedWhileItIsSynced(t *testing.T) {
	s := newFixture(t, automatic)
	s.cluster.Answer(func(request string) *metav1.Status {
		if request == "PATCH shop-alice/deployments/web" {
			fakeapi.Delete[*v1alpha1.Environment](s.api, environmenttest.Teams, "alice")
			return environmenttest.Status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "not now")
		}
		return environmenttest.CountWrites(s.process)(request)
	})
	s.start(0)
	s.eventually("the environment is deleted", func() error {
		if fakeapi.Get[*v1alpha1.Environment](s.api, environmenttest.Teams, "alice") != nil {
			return fmt.Errorf("environment still exists; records: %q", s.recordLines())
		}
		return nil
	})
	for _, record := range s.syncStatuses() {
		if !syncstatus.Ended(record) {
			t.Errorf("unfinished record: %s", lineOf(record))
		}
	}
	if applied, _, err := copies.New(s.store(), keptRevisions).List(t.Context(), environmenttest.Environment().UID); err != nil ||
		len(applied) > 0 {
		t.Errorf("copies of %[2]d objects are left: %[1]v", err, len(applied))
	}
}
