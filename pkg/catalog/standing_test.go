// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// court decides what users may read.
type court struct {
	mu sync.Mutex
	// lost is what a user may not do, by how the user is called.
	lost   map[string]string
	closed error
	asked  int
}

func (c *court) Check(_ context.Context, who access.Holder, permissions []access.Permission) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if len(permissions) == 0 {
		return "", errors.New("nothing is asked for")
	}
	return c.lost[who.String()], c.closed
}

func (c *court) rule(change func(*court)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

// mayNot has a user lose a permission.
func (c *court) mayNot(user, what string) {
	c.rule(func(c *court) { c.lost = map[string]string{fmt.Sprintf("user %q", user): what} })
}

func (c *court) restore() { c.rule(func(c *court) { c.lost, c.closed = nil, nil }) }

// editedBy says who answers for a catalog.
func editedBy(user string) func(*v1alpha1.AppCatalog) {
	return func(catalog *v1alpha1.AppCatalog) {
		catalog.Status.EditedBy = &v1alpha1.AutomatedBy{Username: user, Time: metav1.NewTime(noon)}
	}
}

// judgedStage has the catalog shop, for which eve answers and which has been taken over.
func judgedStage(t *testing.T) (*stage, *court) {
	t.Helper()
	catalog := appCatalog("shop", "api", "worker")
	editedBy("eve")(catalog)
	s, judge := newStage(t, catalog), &court{}
	s.standing = judge
	s.start(0)
	s.reaches("shop", 1)
	s.watching()
	s.windowPasses()
	s.tells(first)
	return s, judge
}

// says expects the reason and the message of a catalog's Ready.
func (s *stage) says(name, reason, message string) {
	s.Helper()
	s.eventually(fmt.Sprintf("%s says %s", name, reason), func() error {
		ready := meta.FindStatusCondition(s.catalog(name).Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Reason != reason || !strings.Contains(ready.Message, message) {
			return fmt.Errorf("Ready is %+v", ready)
		}
		return nil
	})
}

const secretsLost = `user "eve" may not get secrets in the namespace production`

func TestWhatItsEditorMayNotReadIsNotTakenOver(t *testing.T) {
	s, judge := judgedStage(t)
	judge.mayNot("eve", secretsLost)
	s.put("api", "shop/api:2")
	s.windowPasses()
	s.says("shop", v1alpha1.ReasonPermissionLost, secretsLost)
	s.stop()
	s.start(0)
	s.watching()
	s.put("worker", "shop/worker:2")
	s.windowPasses()
	s.windowPasses()
	s.says("shop", v1alpha1.ReasonPermissionLost, secretsLost)
	s.tells(first)
	s.offers(map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})

	judge.restore()
	s.reaches("shop", 2)
	s.says("shop", v1alpha1.ReasonSucceeded, "")
	s.windowPasses()
	s.tells(first, "shop 2 AutoApplied Changed api Changed worker (2)")
}

func TestACatalogSaysWhatItsEditorLosesWhileNothingChanges(t *testing.T) {
	s, judge := judgedStage(t)
	s.says("shop", v1alpha1.ReasonSucceeded, "")
	judge.mayNot("eve", secretsLost)
	s.says("shop", v1alpha1.ReasonPermissionLost, secretsLost)
	judge.restore()
	s.says("shop", v1alpha1.ReasonSucceeded, "")
	s.windowPasses()
	s.tells(first)
	s.offers(map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})
}

func TestAnotherEditorTakesACatalogOver(t *testing.T) {
	s, judge := judgedStage(t)
	judge.mayNot("eve", secretsLost)
	s.put("api", "shop/api:2")
	s.windowPasses()
	s.says("shop", v1alpha1.ReasonPermissionLost, secretsLost)
	s.edit("shop", "eve", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.PreviewOnly = true })
	s.windowPasses()
	s.tells(first)

	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) {
		catalog.Spec.PreviewOnly = false
		editedBy("adam")(catalog)
	})
	s.reaches("shop", 2)
	s.says("shop", v1alpha1.ReasonSucceeded, "")
	s.offers(map[string]string{"api": "shop/api:2", "worker": "shop/worker:1"})
}

func TestNoCatalogWaitsForThePermissionsOfAnother(t *testing.T) {
	mine, others := appCatalog("mine", "api"), appCatalog("theirs", "worker")
	editedBy("eve")(mine)
	editedBy("adam")(others)
	unknown := appCatalog("unknown", "api")
	s, judge := newStage(t, mine, others, unknown), &court{}
	judge.mayNot("eve", secretsLost)
	s.standing = judge
	s.start(0)
	s.watching()
	s.reaches("theirs", 1)
	s.reaches("unknown", 1)
	s.windowPasses()
	s.put("api", "shop/api:2")
	s.put("worker", "shop/worker:2")
	s.reaches("theirs", 2)
	s.reaches("unknown", 2)
	s.windowPasses()
	s.says("mine", v1alpha1.ReasonPermissionLost, secretsLost)
	if revision := s.catalog("mine").Status.Revision; revision != 0 {
		t.Errorf("revision %d of what nobody may read", revision)
	}
}

func TestCatalogsWaitWhilePermissionsAreUnknown(t *testing.T) {
	s, judge := judgedStage(t)
	judge.rule(func(c *court) { c.closed = errors.New("no answer") })
	s.put("api", "shop/api:2")
	s.windowPasses()
	s.tells(first)
	s.says("shop", v1alpha1.ReasonSucceeded, "")
	judge.restore()
	s.reaches("shop", 2)
	s.windowPasses()
	s.tells(first, "shop 2 AutoApplied Changed api (1)")
}
