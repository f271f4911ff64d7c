// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/access/accesstest"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// editedBy sets the editor of a catalog, whose permissions are checked.
func editedBy(user string) func(*v1alpha1.AppCatalog) {
	return func(catalog *v1alpha1.AppCatalog) {
		catalog.Status.EditedBy = &v1alpha1.AutomatedBy{Username: user, Time: metav1.NewTime(noon)}
	}
}

// permissionFixture returns a fixture with the first revision of the catalog shop, whose editor is eve.
func permissionFixture(t *testing.T) (*fixture, *accesstest.Reviewer) {
	t.Helper()
	catalog := appCatalog("shop", "api", "worker")
	editedBy("eve")(catalog)
	s, reviewer := newFixture(t, catalog), &accesstest.Reviewer{RejectEmpty: true}
	s.access = reviewer
	s.start(0)
	s.waitForRevision("shop", 1)
	s.waitForWatches()
	s.stepWindow()
	s.expectRecords(firstRecord)
	return s, reviewer
}

// waitForReason waits for a reason and message of the condition Ready of a catalog.
func (s *fixture) waitForReason(name, reason, message string) {
	s.Helper()
	s.eventually(fmt.Sprintf("the reason of %s is %s", name, reason), func() error {
		ready := meta.FindStatusCondition(s.catalog(name).Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Reason != reason || !strings.Contains(ready.Message, message) {
			return fmt.Errorf("Ready = %+v", ready)
		}
		return nil
	})
}

const secretsLost = `user "eve" may not get secrets in the namespace production`

func TestCatalogsWithoutPermissionAreNotUpdated(t *testing.T) {
	s, reviewer := permissionFixture(t)
	reviewer.Deny(`user "eve"`, secretsLost)
	s.put("api", "shop/api:2")
	s.stepWindow()
	s.waitForReason("shop", v1alpha1.ReasonPermissionLost, secretsLost)
	s.stop()
	s.start(0)
	s.waitForWatches()
	s.put("worker", "shop/worker:2")
	s.stepWindow()
	s.stepWindow()
	s.waitForReason("shop", v1alpha1.ReasonPermissionLost, secretsLost)
	s.expectRecords(firstRecord)
	s.waitForImages(map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})

	reviewer.Allow()
	s.waitForRevision("shop", 2)
	s.waitForReason("shop", v1alpha1.ReasonSucceeded, "")
	s.stepWindow()
	s.expectRecords(firstRecord, "shop 2 AutoApplied Changed api Changed worker (2)")
}

func TestLostPermissionsAreReportedWithoutChanges(t *testing.T) {
	s, reviewer := permissionFixture(t)
	s.waitForReason("shop", v1alpha1.ReasonSucceeded, "")
	reviewer.Deny(`user "eve"`, secretsLost)
	s.waitForReason("shop", v1alpha1.ReasonPermissionLost, secretsLost)
	reviewer.Allow()
	s.waitForReason("shop", v1alpha1.ReasonSucceeded, "")
	s.stepWindow()
	s.expectRecords(firstRecord)
	s.waitForImages(map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})
}

func TestAnotherEditorRestoresPermissions(t *testing.T) {
	s, reviewer := permissionFixture(t)
	reviewer.Deny(`user "eve"`, secretsLost)
	s.put("api", "shop/api:2")
	s.stepWindow()
	s.waitForReason("shop", v1alpha1.ReasonPermissionLost, secretsLost)
	s.edit("shop", "eve", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.PreviewOnly = true })
	s.stepWindow()
	s.expectRecords(firstRecord)

	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) {
		catalog.Spec.PreviewOnly = false
		editedBy("adam")(catalog)
	})
	s.waitForRevision("shop", 2)
	s.waitForReason("shop", v1alpha1.ReasonSucceeded, "")
	s.waitForImages(map[string]string{"api": "shop/api:2", "worker": "shop/worker:1"})
}

func TestLostPermissionsDoNotAffectOtherCatalogs(t *testing.T) {
	mine, others := appCatalog("mine", "api"), appCatalog("theirs", "worker")
	editedBy("eve")(mine)
	editedBy("adam")(others)
	unknown := appCatalog("unknown", "api")
	s, reviewer := newFixture(t, mine, others, unknown), &accesstest.Reviewer{RejectEmpty: true}
	reviewer.Deny(`user "eve"`, secretsLost)
	s.access = reviewer
	s.start(0)
	s.waitForWatches()
	s.waitForRevision("theirs", 1)
	s.waitForRevision("unknown", 1)
	s.stepWindow()
	s.put("api", "shop/api:2")
	s.put("worker", "shop/worker:2")
	s.waitForRevision("theirs", 2)
	s.waitForRevision("unknown", 2)
	s.stepWindow()
	s.waitForReason("mine", v1alpha1.ReasonPermissionLost, secretsLost)
	if revision := s.catalog("mine").Status.Revision; revision != 0 {
		t.Errorf("revision = %d of a source that its editor may not read", revision)
	}
}

func TestCatalogsWaitWhilePermissionsAreUnknown(t *testing.T) {
	s, reviewer := permissionFixture(t)
	reviewer.Fail("", errors.New("the review failed"))
	s.put("api", "shop/api:2")
	s.stepWindow()
	s.expectRecords(firstRecord)
	s.waitForReason("shop", v1alpha1.ReasonSucceeded, "")
	reviewer.Allow()
	s.waitForRevision("shop", 2)
	s.stepWindow()
	s.expectRecords(firstRecord, "shop 2 AutoApplied Changed api (1)")
}
