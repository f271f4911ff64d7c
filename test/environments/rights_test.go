// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/mirrortest"
	"github.com/configbutler/slipstream/test/people"
)

// requester has a catalog show Secrets to those only who may read them.
const requester = `{"spec":{"secrets":"Requester"}}`

// entitled has somebody ask for environments who may create them and not what they would do.
func (s *stage) entitled(t *testing.T) {
	c := s.newScene(t, "entitled", shop, workloads("api", "worker"))
	_, err := c.applyEnvironment(t.Context(), s.mallory, "theft", c.target)
	c.forbidden(t, err, `"mallory" cannot`, "in the namespace "+c.target)

	c.environment(t, "alice")
	c.refused(t, s.mallory, "environments/alice/sync", all, "Forbidden", `"mallory" cannot`, "in the namespace "+c.target)
	if found := s.in(t, c.target).names(); len(found) > 0 {
		t.Errorf("%q have been written", found)
	}

	s.eve.Run(t, "patch", "cat", "shop", "-n", c.team, "--type=merge", "-p", requester)
	c.refused(t, s.dave, "environments/alice/sync", all, "Forbidden", `"dave" cannot get secrets in the namespace `+c.source)
	c.newTarget(t, "entitled-bob")
	_, err = c.applyEnvironment(t.Context(), s.dave, "bob", "entitled-bob")
	c.forbidden(t, err, `"dave" cannot get secrets in the namespace `+c.source)

	c.Apply(t, people.In(c.source, "secret-readers", s.dave.Name))
	mirrortest.Eventually(t, "dave may read the Secrets", func(ctx context.Context) error {
		_, err := c.applyEnvironment(ctx, s.dave, "bob", "entitled-bob")
		return err
	})
	c.synced(t, "alice", all)
	c.synced(t, "bob", all)
}

func (c *scene) forbidden(t *testing.T, err error, sentences ...string) {
	t.Helper()
	for _, want := range append(sentences, "(Forbidden)") {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it is answered with %v, want %q in it", err, want)
		}
	}
}

// withdrawn has the rights of who turned an environment's automatic syncs on be taken away.
func (s *stage) withdrawn(t *testing.T) {
	c := s.newScene(t, "withdrawn", shop, workloads("api", "worker"))
	c.environment(t, "alice", automatic)
	c.says(t, "alice", "Synced")
	before := s.in(t, c.target)
	c.Run(t, "delete", "rolebinding", "dave-edit", "-n", c.target)
	s.restart(t, syscall.SIGTERM) // What is known of rights is kept for some minutes, and asked for anew by a new process.
	c.setImage(t, "api", "shop/api:2")
	e := c.becomes(t, "alice", "says what is not allowed any more", func(e *v1alpha1.Environment) error {
		for _, condition := range e.Status.Conditions {
			if condition.Reason == v1alpha1.ReasonPermissionLost && strings.Contains(condition.Message, "dave") {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", e.Status.Conditions)
	})
	if e.Status.LatestRevision < 2 {
		e = c.offered(t, "alice", 2)
	}
	s.unmoved(t, c.target, before)
	if apimeta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("it is ready: %+v", e.Status.Conditions)
	}

	c.Apply(t, people.In(c.target, "edit", s.dave.Name))
	s.restart(t, syscall.SIGTERM)
	c.applied(t, "alice", 2)
	c.expectImages(t, map[string]string{"api": "shop/api:2", "worker": "shop/worker:1"})
	c.unshared(t)
}

// unshared has the catalog's editor lose the right to read the Secrets that the catalog shares, and get it back, while a Secret is
// rotated: for an environment that follows production by itself, and for one that is new.
func (c *scene) unshared(t *testing.T) {
	t.Helper()
	const bob = "withdrawn-bob"
	lost := fmt.Sprintf("Secrets of %s are not copied: user \"eve\" may not get secrets in the namespace %s", c.source, c.source)
	c.newTarget(t, bob)
	before := text(c.of(t, c.target, "Secret setup"), "data", "TOKEN")
	c.Run(t, "delete", "rolebinding", "eve-secret-readers", "-n", c.source)
	c.restart(t, syscall.SIGTERM)
	c.produce(t, fmt.Sprintf(needs, 2))
	c.says(t, "alice", "Stalled: "+lost)
	c.environmentIn(t, "bob", bob)
	record := c.rests(t, c.sync(t, "bob", all), v1alpha1.SyncStateManualIntervention)
	if problem := fmt.Sprintf("Failed to sync Secret 'setup' from %s - user \"eve\" may not get secrets", c.source); !strings.Contains(problems(record), problem) {
		t.Errorf("the record says %s, want %s in it", problems(record), problem)
	}
	if by := record.Status.RequestedBy; by == nil || by.Username != c.dave.Name || !slices.Contains(by.Groups, "system:authenticated") {
		t.Errorf("the record says that %+v has asked for it, want %s with the groups", by, c.dave.Name)
	}
	c.becomes(t, "bob", "says what is not copied", func(e *v1alpha1.Environment) error {
		found := apimeta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionDependenciesUpToDate)
		if found == nil || found.Reason != v1alpha1.ReasonPermissionLost || !strings.HasPrefix(found.Message, lost) {
			return fmt.Errorf("the condition is %+v", found)
		}
		return nil
	})
	objects := c.in(t, bob)
	if objects["Deployment api"] == nil || objects["ConfigMap pages"] == nil || objects["Secret setup"] != nil || objects["Secret pull"] != nil {
		t.Errorf("the new environment has %q", objects.names())
	}
	if token := text(c.of(t, c.target, "Secret setup"), "data", "TOKEN"); token != before {
		t.Error("the rotated Secret has been copied")
	}

	c.Apply(t, people.In(c.source, "secret-readers", c.eve.Name))
	c.restart(t, syscall.SIGTERM)
	c.says(t, "alice", "Synced")
	c.synced(t, "bob", all)
	for _, target := range []string{c.target, bob} {
		if token := text(c.of(t, target, "Secret setup"), "data", "TOKEN"); token == before || token == "" {
			t.Errorf("the Secret in %s is not the rotated one", target)
		}
	}
}
