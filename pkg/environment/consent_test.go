// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// readSecrets is the permission that the catalog's editor needs.
const readSecrets = "get secrets " + environmenttest.Production

// newSharingFixture returns a fixture in which web refers to a Secret. The catalog shares it with the permissions of its editor eve.
func newSharingFixture(t *testing.T, edit ...func(*v1alpha1.Environment)) *fixture {
	t.Helper()
	s := newFixture(t, edit...)
	environmenttest.Share(s.catalog)
	s.rotate("b25l")
	s.offer(1, strings.Replace(web, "envFrom: [", "envFrom: [{secretRef: {name: login}}, ", 1), worker)
	return s
}

// rotate sets the password in production.
func (s *fixture) rotate(password string) {
	s.Helper()
	s.produce("{apiVersion: v1, kind: Secret, metadata: {name: login}, data: {password: " + password + "}}")
}

// copied expects the target to have a copy with this password, or no copy if it is empty.
func (s *fixture) copied(want string) {
	s.Helper()
	got := ""
	if live := s.cluster.Live("secrets", environmenttest.Target, "login"); live != nil {
		got, _, _ = unstructured.NestedString(live.Object, "data", "password")
	}
	if got != want {
		s.Errorf("password = %q, want %q", got, want)
	}
}

// depends waits until the condition DependenciesUpToDate of alice has a reason and a message.
func (s *fixture) depends(reason, message string) {
	s.Helper()
	s.reaches("DependenciesUpToDate "+reason, func(e *v1alpha1.Environment) bool {
		found := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionDependenciesUpToDate)
		return found != nil && found.Reason == reason && strings.Contains(found.Message, message)
	})
}

const eveLost = `Secrets of production are not copied: user "eve" may not get secrets in the namespace production`

// TestNothingIsCopiedByItselfWithoutTheEditorsRights revokes the permission of the catalog's editor while a Secret changes. Automatic syncs
// copy the Secret once the permission is restored.
func TestNothingIsCopiedByItselfWithoutTheEditorsRights(t *testing.T) {
	for name, tt := range map[string]struct {
		lose, restore func(*fixture)
		reason        string
	}{
		"a revoked permission": {
			lose:    func(s *fixture) { s.rights.Lose(readSecrets) },
			restore: func(s *fixture) { s.rights.Lose() },
			reason:  v1alpha1.ReasonPermissionLost,
		},
		"no answer": {
			lose:    func(s *fixture) { s.rights.Fail(errors.New("no answer")) },
			restore: func(s *fixture) { s.rights.Fail(nil) },
			reason:  v1alpha1.ReasonUnreachable,
		},
		"an unknown editor, and a new one": {
			lose: func(s *fixture) {
				s.catalog.Status.EditedBy = nil
				s.api.Put(s.catalog)
			},
			restore: func(s *fixture) {
				environmenttest.Share(s.catalog)
				s.api.Put(s.catalog)
			},
			reason: v1alpha1.ReasonPermissionLost,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSharingFixture(t, automatic)
			s.start(0)
			s.applied(1)
			s.copied("b25l")
			tt.lose(s)
			s.depends(tt.reason, "Secrets of production are not copied: ")
			s.rotate("dHdv")
			s.prompt("batch")
			s.held(tt.reason)
			s.pass(120)
			s.copied("b25l")
			s.expectRecords("Environment auto.shop-r1.1 Completed r1", "Dependency batch Pending")

			tt.restore(s)
			s.expectRecords("Environment auto.shop-r1.1 Completed r1", "Dependency batch Completed")
			s.copied("dHdv")
			s.held("")
			s.depends(v1alpha1.ReasonUpToDate, "")
		})
	}
}

func TestNewAutomaticEnvironmentWaitsForTheEditorsRights(t *testing.T) {
	s := newSharingFixture(t, automatic)
	s.rights.Lose(readSecrets)
	s.start(0)
	s.held(v1alpha1.ReasonPermissionLost)
	s.depends(v1alpha1.ReasonPermissionLost, eveLost)
	s.pass(60)
	s.expectRecords()
	s.copied("")
	s.rights.Lose()
	s.applied(1)
	s.copied("b25l")
	s.held("")
}

// TestSyncWithoutTheEditorsRights has users request syncs. These apply everything but the Secrets, and report the reason.
func TestSyncWithoutTheEditorsRights(t *testing.T) {
	for name, has := range map[string]string{"an environment with a copy": "b25l", "a new environment": ""} {
		t.Run(name, func(t *testing.T) {
			s := newSharingFixture(t)
			s.start(0)
			if has != "" {
				s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
				s.applied(1)
			}
			s.rights.Lose(readSecrets)
			s.rotate("dHdv")
			s.depends(v1alpha1.ReasonPermissionLost, eveLost)
			s.ask("two", "jane", v1alpha1.SyncRequestSpec{})
			s.reaches("why it failed", func(e *v1alpha1.Environment) bool {
				failed := e.Status.LastError
				return failed != nil && failed.Reason == v1alpha1.ReasonPermissionLost &&
					strings.HasPrefix(failed.Message, `Failed to sync Secret 'login' from production - user "eve" may not get secrets`)
			})
			s.has("web:1 worker:1")
			s.copied(has)

			s.rights.Lose()
			s.ask("three", "jane", v1alpha1.SyncRequestSpec{})
			s.applied(1)
			s.copied("dHdv")
			s.depends(v1alpha1.ReasonUpToDate, "")
			s.eventually("no error", func() error {
				e := s.environment("alice")
				if ready := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady); ready.Status != metav1.ConditionTrue {
					return fmt.Errorf("%+v", ready)
				}
				return nil
			})
		})
	}
}

// TestSecretsThatAreSharedNoMore has a catalog stop sharing Secrets while a sync waits for its window. The sync then needs the permissions
// of the user who requested it, which were not checked at the request.
func TestSecretsThatAreSharedNoMore(t *testing.T) {
	s := newSharingFixture(t, evening)
	s.start(0)
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.expectRecords("Environment one Pending by jane r1")
	s.catalog.Spec.Secrets = v1alpha1.CatalogSecretsRequester
	s.api.Put(s.catalog)
	s.rights.Lose(`user "jane": ` + readSecrets)
	s.beforeEvening()
	s.clock.SetTime(noon.Add(8 * time.Hour))
	s.reaches("why it failed", func(e *v1alpha1.Environment) bool {
		failed := e.Status.LastError
		return failed != nil && failed.Reason == v1alpha1.ReasonPermissionLost &&
			strings.Contains(failed.Message, `user "jane" may not get secrets`)
	})
	s.copied("")
	s.has("web:1 worker:1")
	s.ask("two", "joe", v1alpha1.SyncRequestSpec{})
	s.applied(1)
	s.copied("b25l")
}

// TestInterruptedSyncWithoutRights has a process die during an automatic sync, and its user lose permissions.
func TestInterruptedSyncWithoutRights(t *testing.T) {
	s := newSharingFixture(t, automatic)
	s.catalog.Spec.Secrets = v1alpha1.CatalogSecretsRequester
	s.api.Put(s.catalog)
	s.cluster.Answer(func(request string) *metav1.Status {
		if strings.HasPrefix(request, "PATCH") {
			s.process.Kill()
		}
		return environmenttest.CountWrites(s.process)(request)
	})
	<-s.start(0)
	s.cluster.Answer(environmenttest.CountWrites(s.process))
	s.expectRecords("Environment auto.shop-r1.1 InProgress r1")
	s.rights.Lose(readSecrets)
	s.start(0)
	s.held(v1alpha1.ReasonPermissionLost)
	s.copied("")
	s.rights.Lose()
	s.applied(1)
	s.copied("b25l")
}

// TestPinWithoutRights has a user without permission to read the Secrets pin an environment, and a user with it retry the sync.
func TestPinWithoutRights(t *testing.T) {
	s := newSharingFixture(t)
	s.catalog.Spec.Secrets = v1alpha1.CatalogSecretsRequester
	s.api.Put(s.catalog)
	s.rights.Lose(`user "jane": ` + readSecrets)
	s.start(0)
	s.edit("jane", func(spec *v1alpha1.EnvironmentSpec) { spec.PinnedRevision = new(int64(1)) }, pinField)
	s.expectRecords("Environment generation-2 ManualIntervention by jane r1")
	s.copied("")
	s.has("web:1 worker:1")
	s.tryAgain("joe")
	s.expectRecords("Environment generation-2 Completed by jane r1")
	s.copied("b25l")
	if by := s.syncStatuses()[0].Status.RequestedBy; by != nil {
		t.Errorf("requestedBy of a completed record = %+v", by)
	}
}

// TestLaterAttemptWithoutRights has the target reject a requested sync, and the catalog stop sharing Secrets before the next attempt.
func TestLaterAttemptWithoutRights(t *testing.T) {
	for name, tt := range map[string]struct {
		ask  func(*fixture)
		want string
	}{
		"a pin": {
			func(s *fixture) {
				s.edit("jane", func(spec *v1alpha1.EnvironmentSpec) { spec.PinnedRevision = new(int64(1)) }, pinField)
			}, "Environment generation-2 ManualIntervention by jane r1",
		},
		"a sync": {
			func(s *fixture) { s.ask("one", "jane", v1alpha1.SyncRequestSpec{}) },
			"Environment one ManualIntervention by jane r1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSharingFixture(t)
			s.refuse("dry PATCH shop-alice/secrets/login")
			s.start(0)
			tt.ask(s)
			s.reaches("a failure", func(e *v1alpha1.Environment) bool { return e.Status.LastError != nil })
			s.rights.Lose(`user "jane": ` + readSecrets)
			s.catalog.Spec.Secrets = v1alpha1.CatalogSecretsRequester
			s.api.Put(s.catalog)
			s.refuse("")
			s.expectRecords(tt.want)
			s.copied("")
			s.tryAgain("jane")
			s.expectRecords(tt.want)
			s.copied("")
			s.tryAgain("joe")
			s.applied(1)
			s.copied("b25l")
		})
	}
}

// TestRefreshWithoutRights has a user without the permission and one with it request the same refresh.
func TestRefreshWithoutRights(t *testing.T) {
	s := newSharingFixture(t)
	s.start(0)
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.applied(1)
	s.catalog.Spec.Secrets = v1alpha1.CatalogSecretsRequester
	s.api.Put(s.catalog)
	s.rights.Lose(`user "jane": ` + readSecrets)
	s.rotate("dHdv")
	s.prompt("batch")
	s.reaches("the prompt", func(e *v1alpha1.Environment) bool { return e.Status.LatestDependencySync != "" })
	s.ask("two", "jane", v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionCluster})
	s.expectRecords("Environment one Completed by jane r1", "Dependency batch ManualIntervention by jane")
	s.copied("b25l")
	s.ask("three", "joe", v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionCluster})
	// If the request comes too late for the pending record, it gets a record of its own.
	s.eventually("the copy", func() error {
		login := s.cluster.Live("secrets", environmenttest.Target, "login")
		if login == nil || fmt.Sprint(login.Object["data"]) != "map[password:dHdv]" {
			return fmt.Errorf("%v", login)
		}
		return nil
	})
}

// TestRefreshOfWhatPatchesNamed has a patch refer to a Secret that the catalog's workloads do not refer to. A user without permission to
// read it removes the patch and requests a refresh, which must not copy the new version.
func TestRefreshOfWhatPatchesNamed(t *testing.T) {
	s := newSharingFixture(t, func(e *v1alpha1.Environment) {
		e.Spec.Patches = []v1alpha1.Patch{{
			Target: v1alpha1.PatchTarget{Kind: "Deployment", Name: "worker"}, Type: v1alpha1.PatchStrategicMerge,
			Patch: "{spec: {template: {spec: {containers: [{name: worker, envFrom: [{secretRef: {name: root}}]}]}}}}",
		}}
	})
	version := func(want string) {
		t.Helper()
		got := ""
		if live := s.cluster.Live("secrets", environmenttest.Target, "root"); live != nil {
			got, _, _ = unstructured.NestedString(live.Object, "data", "key")
		}
		if got != want {
			t.Errorf("Secret root = %q, want %q", got, want)
		}
	}
	s.produce("{apiVersion: v1, kind: Secret, metadata: {name: root}, data: {key: b25l}}")
	s.start(0)
	s.ask("one", "joe", v1alpha1.SyncRequestSpec{})
	s.applied(1)
	version("b25l")

	s.rights.Lose(`user "jane": ` + readSecrets)
	s.edit("jane", func(spec *v1alpha1.EnvironmentSpec) { spec.Patches = nil }, "patches")
	s.produce("{apiVersion: v1, kind: Secret, metadata: {name: root}, data: {key: dHdv}}")
	s.ask("two", "jane", v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionCluster})
	s.expectRecords("Environment one Completed by joe r1", "Dependency two ManualIntervention by jane")
	version("b25l")

	s.ask("three", "jane", v1alpha1.SyncRequestSpec{})
	s.expectRecords("Environment one Completed by joe r1", "Dependency two Completed by jane", "Environment three Completed by jane r1")
	version("")
}

// TestRefreshOfWhatFailedByItself has a user request a refresh that has failed automatically, because the user of automatic syncs has lost
// a permission. It then uses the permissions of the requester only, and writes in shadow mode, too.
func TestRefreshOfWhatFailedByItself(t *testing.T) {
	s := newSharingFixture(t, automatic)
	s.catalog.Spec.Secrets = v1alpha1.CatalogSecretsRequester
	s.api.Put(s.catalog)
	s.start(0)
	s.applied(1)
	s.refuse("dry PATCH shop-alice/secrets/login")
	s.rotate("dHdv")
	s.prompt("batch")
	s.expectRecords("Environment auto.shop-r1.1 Completed r1", "Dependency batch ManualIntervention")
	s.rights.Lose(`user "eve": ` + readSecrets)
	s.refuse("")
	s.edit("joe", func(spec *v1alpha1.EnvironmentSpec) { spec.Shadow = true }, "shadow")
	s.ask("two", "joe", v1alpha1.SyncRequestSpec{Action: v1alpha1.SyncActionCluster})
	s.expectRecords("Environment auto.shop-r1.1 Completed r1", "Dependency batch Completed")
	s.copied("dHdv")
}

// tryAgain has a user retry the record in the state ManualIntervention.
func (s *fixture) tryAgain(who string) {
	s.Helper()
	for _, record := range s.syncStatuses() {
		if record.Status.State != v1alpha1.SyncStateManualIntervention {
			continue
		}
		moved, err := syncstatus.Move(record, syncstatus.Step{To: v1alpha1.SyncStateRetrying, By: who, At: s.clock.Now()})
		if err != nil {
			s.Fatal(err)
		}
		moved.Status.RequestedBy = &v1alpha1.AutomatedBy{Username: who}
		s.api.Put(moved)
		return
	}
	s.Fatal("no record is in ManualIntervention")
}
