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
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/mirrortest"
	"github.com/configbutler/slipstream/test/people"
)

// creators are permitted to create namespaces, and the server to look after them.
var creators = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: namespace-creators}
rules:
- {apiGroups: [""], resources: [namespaces], verbs: [create]}
---
` + people.Everywhere("namespace-creators", "dave") + people.Everywhere("edit", "dave") + people.Everywhere(people.Namespaces, people.Server) + people.Everywhere(people.Targets, people.Server)

// lived has environments come to their end in every way: what they wrote goes or stays, and what others made stays.
func (s *stage) lived(t *testing.T) {
	c := s.newScene(t, "lived", shop, workloads("api", "worker"))
	c.newTarget(t, "lived-orphan")
	c.Apply(t, creators)
	c.environment(t, "alice")
	c.environmentIn(t, "bob", "lived-orphan", "deletionPolicy: Orphan")
	c.environmentIn(t, "carol", "lived-created", "createNamespace: true")
	for _, name := range []string{"alice", "bob", "carol"} {
		c.synced(t, name, all)
	}
	c.addOwn(t)
	c.announced(t)
	c.logged(t)

	orphans := s.in(t, "lived-orphan")
	s.dave.Run(t, "delete", "envt", "bob", "-n", c.team, "--timeout=180s")
	if got := s.in(t, "lived-orphan").names(); !slices.Equal(got, orphans.names()) {
		t.Errorf("there are %q, want %q", got, orphans.names())
	}
	s.dave.Run(t, "delete", "envt", "carol", "-n", c.team, "--timeout=180s")
	mirrortest.Eventually(t, "the created namespace goes", func(ctx context.Context) error {
		_, err := s.admin.Client.CoreV1().Namespaces().Get(ctx, "lived-created", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
	c.expired(t)
}

// announced expects Events, metrics and what has come up to be told.
func (c *scene) announced(t *testing.T) {
	t.Helper()
	c.says(t, "bob", "Synced, 2 of 2 workloads not ready")
	if e := c.get(t, "bob"); apimeta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("no Pod runs, and it is ready: %+v", e.Status.Conditions)
	}
	c.comesUp(t, "bob", "lived-orphan")
	c.says(t, "bob", "Synced")
	c.Run(t, "wait", "-n", c.team, "envt/bob", "--for=condition=Ready", "--timeout=180s")
	mirrortest.Eventually(t, "an Event about the sync", func(ctx context.Context) error {
		out, err := c.Administrator.Run(ctx, "events", "-n", c.team, "--for=environment/bob")
		if err == nil && (!strings.Contains(out, "Normal   Synced") || !strings.Contains(out, "revision 1")) {
			err = fmt.Errorf("kubectl events prints\n%s", out)
		}
		return err
	})
	metrics, err := c.Administrator.Run(t.Context(), "get", "--raw", "/metrics", "--server="+c.Env("SERVER_URL"), "--insecure-skip-tls-verify")
	if err != nil || !strings.Contains(metrics, "\nslipstream_environment") {
		t.Errorf("no metric is about environments: %v", err)
	}
}

// expired has an environment live for the shortest time there is, which is over or soon will be: what it wrote goes, and what
// dave made stays.
func (c *scene) expired(t *testing.T) {
	t.Helper()
	if _, err := c.applyEnvironment(t.Context(), c.dave, "alice", c.target, "ttl: 1m"); err != nil {
		t.Fatal(err)
	}
	mirrortest.Eventually(t, "the environment expires", func(ctx context.Context) error {
		_, err := c.dave.Own.ConfigbutlerV1alpha1().Environments(c.team).Get(ctx, "alice", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
	if got := c.in(t, c.target).names(); !slices.Equal(got, []string{"ConfigMap mine"}) {
		t.Errorf("there are %q", got)
	}
}

// logged expects the server's audit log to say who asked for what, and what was answered.
func (c *scene) logged(t *testing.T) {
	t.Helper()
	c.refused(t, c.mallory, "environments/alice/sync", `{"spec":{"action":"Nothing"}}`, "Invalid", "spec.action")
	for _, subresource := range []string{"dismiss", "undismiss", "rediscover"} {
		_, err := c.ask(t.Context(), c.dave, "environments/alice/"+subresource, all)
		if err != nil && !strings.Contains(err.Error(), "(Conflict)") {
			t.Errorf("%s: %v", subresource, err)
		}
	}
	events := audited(t, c.ownLog, func(event *auditv1.Event) bool {
		return event.ObjectRef != nil && event.ObjectRef.Namespace == c.team && event.ObjectRef.Resource == "environments" && event.Verb == "create"
	})
	answered := map[string][]int32{}
	for _, event := range events {
		by := event.User.Username + " " + event.ObjectRef.Subresource
		answered[by] = append(answered[by], event.ResponseStatus.Code)
	}
	for _, by := range []string{"dave sync", "dave dismiss", "dave undismiss", "dave rediscover"} {
		if len(answered[by]) == 0 {
			t.Errorf("the audit log does not say what was answered to %s: %v", by, answered)
		}
	}
	if !slices.Contains(answered["mallory sync"], http.StatusUnprocessableEntity) {
		t.Errorf("the audit log says that mallory was answered with %v", answered["mallory sync"])
	}
	if accepted := answered["dave sync"]; !slices.Contains(accepted, http.StatusCreated) {
		t.Errorf("the audit log says that dave was answered with %v", accepted)
	}
}
