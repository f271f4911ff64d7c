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

// readSecrets is what the catalog's editor must be allowed to do.
const readSecrets = "get secrets " + environmenttest.Production

// newSharingFixture has web refer to a Secret, which the catalog shares for eve.
func newSharingFixture(t *testing.T, edit ...func(*v1alpha1.Environment)) *fixture {
	t.Helper()
	s := newFixture(t, edit...)
	environmenttest.Share(s.catalog)
	s.rotate("b25l")
	s.offer(1, strings.Replace(web, "envFrom: [", "envFrom: [{secretRef: {name: login}}, ", 1), worker)
	return s
}

// rotate has a password in production.
func (s *fixture) rotate(password string) {
	s.Helper()
	s.produce("{apiVersion: v1, kind: Secret, metadata: {name: login}, data: {password: " + password + "}}")
}

// copied expects the password in the target, none if it is empty.
func (s *fixture) copied(want string) {
	s.Helper()
	got := ""
	if live := s.cluster.Live("secrets", environmenttest.Target, "login"); live != nil {
		got, _, _ = unstructured.NestedString(live.Object, "data", "password")
	}
	if got != want {
		s.Errorf("the password is %q, want %q", got, want)
	}
}

// depends waits until alice says how things are with what workloads refer to.
func (s *fixture) depends(reason, message string) {
	s.Helper()
	s.reaches("DependenciesUpToDate "+reason, func(e *v1alpha1.Environment) bool {
		found := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionDependenciesUpToDate)
		return found != nil && found.Reason == reason && strings.Contains(found.Message, message)
	})
}

const eveLost = `Secrets of production are not copied: user "eve" may not get secrets in the namespace production`

// TestNothingIsCopiedByItselfWithoutTheEditorsRights has a Secret change meanwhile. All of it is made up for.
func TestNothingIsCopiedByItselfWithoutTheEditorsRights(t *testing.T) {
	for name, tt := range map[string]struct {
		lose, restore func(*fixture)
		reason        string
	}{
		"a right that is lost": {
			lose:    func(s *fixture) { s.rights.Lose(readSecrets) },
			restore: func(s *fixture) { s.rights.Lose() },
			reason:  v1alpha1.ReasonPermissionLost,
		},
		"no answer": {
			lose:    func(s *fixture) { s.rights.Fail(errors.New("no answer")) },
			restore: func(s *fixture) { s.rights.Fail(nil) },
			reason:  v1alpha1.ReasonUnreachable,
		},
		"an editor who is not known, and another one": {
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

// TestSyncWithoutTheEditorsRights has users ask for syncs: those bring all but the Secrets, and say why.
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

// TestSecretsThatAreSharedNoMore has a sync wait for its window while the catalog ends to share Secrets: they are copied by the
// permissions of who asked for the sync, who has not been asked for them.
func TestSecretsThatAreSharedNoMore(t *testing.T) {
	s := newSharingFixture(t, func(e *v1alpha1.Environment) {
		e.Spec.SyncWindows = []v1alpha1.SyncWindow{{Name: "hour", Kind: v1alpha1.SyncWindowAllow, Schedule: "10 12 * * *", Duration: metav1.Duration{Duration: time.Hour}}}
	})
	s.start(0)
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.expectRecords("Environment one Pending by jane r1")
	s.catalog.Spec.Secrets = v1alpha1.CatalogSecretsRequester
	s.api.Put(s.catalog)
	s.rights.Lose(`user "jane": ` + readSecrets)
	s.reaches("why it failed", func(e *v1alpha1.Environment) bool {
		failed := e.Status.LastError
		return failed != nil && failed.Reason == v1alpha1.ReasonPermissionLost && strings.Contains(failed.Message, `user "jane" may not get secrets`)
	})
	s.copied("")
	s.has("web:1 worker:1")
	s.ask("two", "joe", v1alpha1.SyncRequestSpec{})
	s.applied(1)
	s.copied("b25l")
}

// TestInterruptedSyncWithoutRights has a process die while an environment is synced by itself, and its user lose rights.
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

// TestPinWithoutRights has a user without the right to read the Secrets pin an environment, and another with it retry.
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
		t.Errorf("a record that has ended says who asked: %+v", by)
	}
}

// TestLaterAttemptWithoutRights has the target refuse what users sync, and the catalog end to share Secrets before the next
// attempt, after the request has been taken up.
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

// TestRefreshWithoutRights has users without and with the right ask for the same refresh.
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
	// The request may have come too late for the record that waited, and then has one of its own.
	s.eventually("the copy", func() error {
		login := s.cluster.Live("secrets", environmenttest.Target, "login")
		if login == nil || fmt.Sprint(login.Object["data"]) != "map[password:dHdv]" {
			return fmt.Errorf("%v", login)
		}
		return nil
	})
}

// TestRefreshOfWhatPatchesNamed has a patch bring a Secret that the catalog's workloads do not refer to, and a user without the
// right to read it take the patch away and ask for a refresh, which would bring its new version.
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
			t.Errorf("root is %q, want %q", got, want)
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

// TestRefreshOfWhatFailedByItself has a user ask for what failed while it was synced by itself, and whose user has lost the right: it
// is that user's own sync from then on, which waits for no other right, and writes also where automatic ones only show.
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

// tryAgain has a user retry the record that is in ManualIntervention.
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
