// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// requester makes a catalog show Secrets only to users who can read them.
const requester = `{"spec":{"secrets":"Requester"}}`

// testRequestPermissions has users without the required permissions create environments and request syncs.
func (s *testCluster) testRequestPermissions(t *testing.T) {
	c := s.newFixture(t, "entitled", shop, workloads("api", "worker"))
	_, err := c.applyEnvironment(t.Context(), s.mallory, "theft", c.target)
	c.expectForbidden(t, err, `"mallory" cannot`, "in the namespace "+c.target)

	c.mustApply(t, "alice")
	c.expectRefused(t, s.mallory, "environments/alice/sync", all, "Forbidden", `"mallory" cannot`, "in the namespace "+c.target)
	if found := s.objectsIn(t, c.target).names(); len(found) > 0 {
		t.Errorf("%q were written", found)
	}

	s.eve.Patch(t, c.team, "cat/shop", requester)
	c.expectRefused(t, s.dave, "environments/alice/sync", all, "Forbidden", `"dave" cannot get secrets in the namespace `+c.source)
	c.newTarget(t, "entitled-bob")
	_, err = c.applyEnvironment(t.Context(), s.dave, "bob", "entitled-bob")
	c.expectForbidden(t, err, `"dave" cannot get secrets in the namespace `+c.source)

	c.Apply(t, people.In(c.source, "secret-readers", s.dave.Name))
	mirrortest.Eventually(t, "dave can read the Secrets", func(ctx context.Context) error {
		return s.dave.Try.Apply(ctx, "", c.environment("bob", "entitled-bob"))
	})
	c.mustSync(t, "alice", all)
	c.mustSync(t, "bob", all)
	c.testRequestThatWaited(t)
}

// testRequestThatWaited has dave lose the permissions in a target while a sync that he has requested waits for a sync window. Then he
// removes the window.
func (c *fixture) testRequestThatWaited(t *testing.T) {
	t.Helper()
	const carl = "entitled-carl"
	c.newTarget(t, carl)
	later := time.Now().UTC().Add(12 * time.Hour)
	c.mustApplyIn(t, "carl", carl, fmt.Sprintf("syncWindows: [{name: nightly, kind: Allow, schedule: '0 %d * * *', duration: 1h}]", later.Hour()))
	waiting := c.sync(t, "carl", all)
	c.waitForStatus(t, "carl", "Held: window nightly opens")
	c.Delete(t, carl, "rolebinding/dave-edit")
	mirrortest.Eventually(t, "dave cannot write in the target", func(ctx context.Context) error {
		if out, err := c.dave.Kubectl.Run(ctx, "auth", "can-i", "create", "deployments.apps", "-n", carl); err == nil {
			return errors.New(out)
		}
		return nil
	})
	c.mustApplyIn(t, "carl", carl)
	record := c.waitForState(t, waiting, v1alpha1.SyncStateManualIntervention)
	if !strings.Contains(problems(record), `user "dave" may not create`) {
		t.Errorf("problems of the record: %s", problems(record))
	}
	if found := c.objectsIn(t, carl).names(); len(found) > 0 {
		t.Errorf("%q were written", found)
	}
}

func (c *fixture) expectForbidden(t *testing.T, err error, sentences ...string) {
	t.Helper()
	for _, want := range append(sentences, "(Forbidden)") {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("request failed with %v, want %q", err, want)
		}
	}
}

// testPermissionLost revokes the permissions of the user who enabled automatic syncs.
func (s *testCluster) testPermissionLost(t *testing.T) {
	c := s.newFixture(t, "withdrawn", shop, workloads("api", "worker"))
	c.mustApply(t, "alice", automatic)
	c.waitForStatus(t, "alice", "Synced")
	before := s.objectsIn(t, c.target)
	c.Delete(t, c.target, "rolebinding/dave-edit")
	s.restart(t, syscall.SIGTERM) // Access reviews are cached for some minutes; a new process starts without the cache.
	c.setImage(t, "api", "shop/api:2")
	e := c.waitFor(t, "alice", "reports the lost permission", func(e *v1alpha1.Environment) error {
		for _, condition := range e.Status.Conditions {
			if condition.Reason == v1alpha1.ReasonPermissionLost && strings.Contains(condition.Message, "dave") {
				return nil
			}
		}
		return fmt.Errorf("conditions: %+v", e.Status.Conditions)
	})
	if e.Status.LatestRevision < 2 {
		e = c.waitForRevision(t, "alice", 2)
	}
	s.expectUnchanged(t, c.target, before)
	if apimeta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("environment is ready: %+v", e.Status.Conditions)
	}

	c.Apply(t, people.In(c.target, "edit", s.dave.Name))
	s.restart(t, syscall.SIGTERM)
	c.waitForApplied(t, "alice", 2)
	c.expectImages(t, map[string]string{"api": "shop/api:2", "worker": "shop/worker:1"})
	c.testSharedSecretsPermissionLost(t)
}

// testSharedSecretsPermissionLost revokes the catalog editor's permission to read the shared Secrets while a Secret is rotated,
// and grants it again: for an automatic environment and for a new one.
func (c *fixture) testSharedSecretsPermissionLost(t *testing.T) {
	t.Helper()
	const bob = "withdrawn-bob"
	lost := fmt.Sprintf("Secrets of %s are not copied: user \"eve\" may not get secrets in the namespace %s", c.source, c.source)
	c.newTarget(t, bob)
	before := text(c.object(t, c.target, "Secret setup"), "data", "TOKEN")
	c.Delete(t, c.source, "rolebinding/eve-secret-readers")
	c.restart(t, syscall.SIGTERM)
	c.applyToSource(t, fmt.Sprintf(needs, 2))
	c.waitForStatus(t, "alice", "Stalled: "+lost)
	c.mustApplyIn(t, "bob", bob)
	record := c.waitForState(t, c.sync(t, "bob", all), v1alpha1.SyncStateManualIntervention)
	if problem := fmt.Sprintf("Failed to sync Secret 'setup' from %s - user \"eve\" may not get secrets",
		c.source); !strings.Contains(problems(record), problem) {
		t.Errorf("problems of the record: %s, want %s", problems(record), problem)
	}
	if by := record.Status.RequestedBy; by == nil || by.Username != c.dave.Name || !slices.Contains(by.Groups, "system:authenticated") {
		t.Errorf("requestedBy = %+v, want %s with groups", by, c.dave.Name)
	}
	c.waitFor(t, "bob", "reports the Secrets that are not copied", func(e *v1alpha1.Environment) error {
		found := apimeta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionDependenciesUpToDate)
		if found == nil || found.Reason != v1alpha1.ReasonPermissionLost || !strings.HasPrefix(found.Message, lost) {
			return fmt.Errorf("condition = %+v", found)
		}
		return nil
	})
	objects := c.objectsIn(t, bob)
	if objects["Deployment api"] == nil || objects["ConfigMap pages"] == nil || objects["Secret setup"] != nil ||
		objects["Secret pull"] != nil {
		t.Errorf("objects of the new environment: %q", objects.names())
	}
	if token := text(c.object(t, c.target, "Secret setup"), "data", "TOKEN"); token != before {
		t.Error("the rotated Secret was copied")
	}

	c.Apply(t, people.In(c.source, "secret-readers", c.eve.Name))
	c.restart(t, syscall.SIGTERM)
	c.waitForStatus(t, "alice", "Synced")
	c.mustSync(t, "bob", all)
	for _, target := range []string{c.target, bob} {
		if token := text(c.object(t, target, "Secret setup"), "data", "TOKEN"); token == before || token == "" {
			t.Errorf("the rotated Secret was not copied to %s", target)
		}
	}
}
