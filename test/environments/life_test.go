// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// creators allows a user to create namespaces, and the server to manage them.
var creators = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: namespace-creators}
rules:
- {apiGroups: [""], resources: [namespaces], verbs: [create]}
---
` + people.Everywhere("namespace-creators", "dave") + people.Everywhere("edit", "dave") +
	people.Everywhere(people.Namespaces, people.Server) + people.Everywhere(people.Targets, people.Server)

// testDeletion deletes environments in every way. Their objects are deleted or orphaned, and objects of others are preserved.
func (s *testCluster) testDeletion(t *testing.T) {
	c := s.newFixture(t, "lived", shop, workloads("api", "worker"))
	c.newTarget(t, "lived-orphan")
	c.Apply(t, creators)
	c.mustApply(t, "alice")
	c.mustApplyIn(t, "bob", "lived-orphan", "deletionPolicy: Orphan")
	c.mustApplyIn(t, "carol", "lived-created", "createNamespace: true")
	for _, name := range []string{"alice", "bob", "carol"} {
		c.mustSync(t, name, all)
	}
	c.addUserChanges(t)
	c.testEventsAndMetrics(t)
	c.testAuditLog(t)

	orphans := s.objectsIn(t, "lived-orphan")
	s.dave.Delete(t, c.team, "envt/bob")
	if got := s.objectsIn(t, "lived-orphan").names(); !slices.Equal(got, orphans.names()) {
		t.Errorf("objects: %q, want %q", got, orphans.names())
	}
	s.dave.Delete(t, c.team, "envt/carol")
	mirrortest.Eventually(t, "the created namespace is deleted", func(ctx context.Context) error {
		_, err := s.admin.Client.CoreV1().Namespaces().Get(ctx, "lived-created", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it still exists"))
	})
	c.testTTL(t)
}

// testEventsAndMetrics checks Events, metrics and the readiness of workloads.
func (c *fixture) testEventsAndMetrics(t *testing.T) {
	t.Helper()
	mirrortest.Eventually(t, "Event about the sync", func(ctx context.Context) error {
		out, err := c.Administrator.Run(ctx, "events", "-n", c.team, "--for=environment/bob")
		if err == nil && (!strings.Contains(out, "Normal   Synced") || !strings.Contains(out, "revision 1")) {
			err = fmt.Errorf("kubectl events printed\n%s", out)
		}
		return err
	})
	metrics, err := c.ReadServer(t.Context(), "/metrics")
	if err != nil || !strings.Contains(metrics, "\nslipstream_environment") {
		t.Errorf("metrics of environments are missing: %v", err)
	}
}

// testTTL sets the shortest TTL. The environment's objects must be deleted, and the user's objects preserved.
func (c *fixture) testTTL(t *testing.T) {
	t.Helper()
	c.dave.Apply(t, c.environment("alice", c.target, "ttl: 1m"))
	mirrortest.Eventually(t, "the environment expires", func(ctx context.Context) error {
		_, err := c.dave.Own.ConfigbutlerV1alpha1().Environments(c.team).Get(ctx, "alice", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it still exists"))
	})
	if got := c.objectsIn(t, c.target).names(); !slices.Equal(got, []string{"ConfigMap mine"}) {
		t.Errorf("objects: %q", got)
	}
}

// testAuditLog expects the server's audit log to have the requests, their users and the response codes.
func (c *fixture) testAuditLog(t *testing.T) {
	t.Helper()
	c.expectRefused(t, c.mallory, "environments/alice/sync", `{"spec":{"action":"Nothing"}}`, "Invalid", "spec.action")
	for _, subresource := range []string{"dismiss", "undismiss", "rediscover"} {
		_, err := c.request(t.Context(), c.dave, "environments/alice/"+subresource, all)
		if err != nil && !strings.Contains(err.Error(), "(Conflict)") {
			t.Errorf("%s: %v", subresource, err)
		}
	}
	events := audited(t, c.ownLog, func(event *auditv1.Event) bool {
		return event.ObjectRef != nil && event.ObjectRef.Namespace == c.team && event.ObjectRef.Resource == "environments" &&
			event.Verb == "create"
	})
	responses := map[string][]int32{}
	for _, event := range events {
		by := event.User.Username + " " + event.ObjectRef.Subresource
		responses[by] = append(responses[by], event.ResponseStatus.Code)
	}
	for _, by := range []string{"dave sync", "dave dismiss", "dave undismiss", "dave rediscover"} {
		if len(responses[by]) == 0 {
			t.Errorf("audit log lacks the response to %s: %v", by, responses)
		}
	}
	if !slices.Contains(responses["mallory sync"], http.StatusUnprocessableEntity) {
		t.Errorf("audit log has the responses %v to mallory", responses["mallory sync"])
	}
	if accepted := responses["dave sync"]; !slices.Contains(accepted, http.StatusCreated) {
		t.Errorf("audit log has the responses %v to dave", accepted)
	}
}
