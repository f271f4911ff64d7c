// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"fmt"
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
}
