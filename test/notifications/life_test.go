// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notifications

import (
	"fmt"
	"slices"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/message"
)

const life = "events: [Prompted, Completed, Dismissed, Conflicted, Failed]"

// testLife syncs and dismisses what an environment is offered.
func (s *testCluster) testLife(t *testing.T) {
	c := s.newFixture(t, "life")
	r := newInbox(t)
	s.sink(t, c.team, "chat", r.sink(), prompt, life)
	c.environment(t, "alice", c.target)
	c.sync(t, "alice")
	byJane := func(n *message.Notification) bool { return n.Actor == s.jane.Name }
	first := r.gets(t, "Completed Environment alice", byJane)

	c.image(t, "shop/web:2")
	prompted := r.gets(t, "Prompted Environment alice")
	if !slices.Contains(prompted.ChangedBy, message.Author{Name: s.jane.Name, Signal: "Audit"}) ||
		prompted.Headline != "Environment life/alice: 1 workload changed" {
		t.Errorf("%+v", prompted)
	}
	c.sync(t, "alice")
	r.gets(t, "Completed Environment alice", func(n *message.Notification) bool { return n.ID != first.ID && byJane(n) })

	c.image(t, "shop/web:3")
	r.gets(t, "Prompted Environment alice", func(n *message.Notification) bool { return n.ID != prompted.ID })
	c.request(t, "alice", "dismiss")
	dismissed := r.gets(t, "Dismissed Environment alice")
	if !byJane(&dismissed) {
		t.Errorf("%+v", dismissed)
	}
	s.delivered(t, c.team, "chat", 5)
	r.expect(t, "Completed Environment alice", "Prompted Environment alice", "Completed Environment alice", "Prompted Environment alice",
		"Dismissed Environment alice")
}

// testFailures has a sync fail because of a quota, and another because fields were changed twice.
func (s *testCluster) testFailures(t *testing.T) {
	c := s.newFixture(t, "failures")
	r := newInbox(t)
	s.sink(t, c.team, "chat", r.sink(), prompt, "events: [Conflicted, Failed]")
	s.CreateNamespace(t, "failures-limited")
	s.Apply(t, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: none, namespace: failures-limited}, spec: {hard: {count/deployments.apps: '0'}}}")
	s.HasField(t, "failures-limited", "resourcequota/none", `{.status.hard.count/deployments\.apps}`, "0")
	c.environment(t, "bob", "failures-limited")
	c.waitFor(t, "bob", "has observed the catalog", func(e *v1alpha1.Environment) bool { return e.Status.LatestRevision > 0 })
	c.request(t, "bob", "sync")
	failed := r.gets(t, "Failed Environment bob", severity(v1alpha1.SeverityError))
	if failed.Error == "" || failed.Actor != s.jane.Name {
		t.Errorf("%+v", failed)
	}
	s.Delete(t, "failures-limited", "resourcequota/none")
	c.request(t, "bob", "sync")
	r.gets(t, "Failed ended Environment bob")

	c.environment(t, "alice", c.target, "type: Branch", "branchWorkloads: [{kind: Deployment, name: web}]")
	c.sync(t, "alice")
	c.jane.Run(t, "set", "image", "-n", c.target, "deployment/web", "main=shop/web:jane")
	c.image(t, "shop/web:2")
	c.waitFor(t, "alice", "is offered the change", func(e *v1alpha1.Environment) bool { return e.Status.LatestRevision > 1 })
	c.request(t, "alice", "sync")
	r.gets(t, "Conflicted Environment alice", severity(v1alpha1.SeverityWarning))
	c.waitFor(t, "alice", "reports the conflict", func(e *v1alpha1.Environment) bool { return len(e.Status.Conflicts) == 1 })
	if _, err := c.jane.Try.Post(t.Context(), fmt.Sprintf("/apis/configbutler.ai/v1alpha1/namespaces/%s/environments/alice/resolve", c.team),
		`{"spec":{"take":[{"kind":"Deployment","name":"web","fields":["/spec/template/spec/containers[name=main]/image"]}]}}`); err != nil {
		t.Fatal(err)
	}
	r.gets(t, "Conflicted ended Environment alice")
}
