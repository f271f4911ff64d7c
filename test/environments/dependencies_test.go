// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// needs is a version of the objects that api refers to: a Secret of an init container's envFrom, a ConfigMap in a projected
// volume, and a pull secret.
const needs = `
{apiVersion: v1, kind: Secret, metadata: {name: setup}, stringData: {TOKEN: production-token-%[1]d}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: pages}, data: {index.html: hello-%[1]d}}
---
{apiVersion: v1, kind: Secret, metadata: {name: pull}, type: kubernetes.io/dockerconfigjson,
  stringData: {.dockerconfigjson: '{"auths":{"v%[1]d":{}}}'}}
`

// needed are the changes of these objects, as records list them.
var needed = []string{"ConfigMap pages Changed", "Secret pull Changed", "Secret setup Changed"}

// testDependencyChanges changes objects that workloads refer to, for two environments that use them and one that does not.
func (s *testCluster) testDependencyChanges(t *testing.T) {
	c := s.newFixture(t, "depend", shop, workloads("api"))
	c.applyCatalog(t, "jobs", workloads("worker"))
	c.newTarget(t, "depend-bob")
	c.newTarget(t, "depend-carol")
	c.mustApply(t, "alice")
	c.mustApplyIn(t, "bob", "depend-bob")
	c.mustApplyIn(t, "carol", "depend-carol", catalogRef+"{name: jobs}")
	for _, name := range []string{"alice", "bob", "carol"} {
		c.mustSync(t, name, all)
	}
	before := s.objectsIn(t, c.target)

	c.applyToSource(t, fmt.Sprintf(needs, 2))
	for _, name := range []string{"alice", "bob"} {
		c.waitForStatus(t, name, "1 ConfigMap, 2 Secrets changed")
		c.expectPrompt(t, name, needed...)
	}
	c.expectNextChange(t, "carol")
	s.expectUnchanged(t, c.target, before)
	c.testDismiss(t, "alice", before)
	c.testDependencySync(t, "alice", before)
	c.waitForStatus(t, "bob", "1 ConfigMap, 2 Secrets changed")
}

// expectPrompt waits until an environment has exactly one record of its dependencies, which is pending and has the given changes. Changes
// that are applied slowly are in more than one batch, all of which update this record.
func (c *fixture) expectPrompt(t *testing.T, environment string, want ...string) {
	t.Helper()
	c.waitFor(t, environment, "has one pending record", func(e *v1alpha1.Environment) error {
		records, err := c.records(t.Context(), environment, v1alpha1.SyncTypeDependency)
		if err != nil || len(records) != 1 {
			return errors.Join(err, fmt.Errorf("%d dependency records", len(records)))
		}
		record := &records[0]
		if record.Status.State != v1alpha1.SyncStatePending || !slices.Equal(changed(record), want) {
			return fmt.Errorf("%s is %s with changes %q, want %q", record.Name, record.Status.State, changed(record), want)
		}
		if latest := e.Status.LatestDependencySync; latest != record.Name {
			return fmt.Errorf("latestDependencySync = %s, want %s", latest, record.Name)
		}
		return nil
	})
}

// expectNextChange changes a dependency of one environment. The other environments must not be prompted.
func (c *fixture) expectNextChange(t *testing.T, environment string) {
	t.Helper()
	c.applyToSource(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: jobs}, data: {every: day}}")
	c.nextRecord(t, environment, v1alpha1.SyncTypeDependency, nil)
	c.waitForStatus(t, environment, "1 ConfigMap changed")
	c.expectPrompt(t, environment, "ConfigMap jobs Changed")
	for _, other := range []string{"alice", "bob"} {
		c.expectPrompt(t, other, needed...)
	}
}

// testDismiss dismisses a prompt.
func (c *fixture) testDismiss(t *testing.T, environment string, before objects) {
	t.Helper()
	record := c.get(t, environment).Status.LatestDependencySync
	c.mustRequest(t, c.dave, "environments/"+environment+"/dismiss", all)
	if by := c.waitForState(t, record, v1alpha1.SyncStateDismissed).Status.ResolvedBy; by != "dave" {
		t.Errorf("%s was dismissed by %q", record, by)
	}
	c.waitForStatus(t, environment, "Dismissed: 1 ConfigMap, 2 Secrets changed")
	c.waitFor(t, environment, "offers nothing", func(e *v1alpha1.Environment) error {
		if e.Status.LatestDependencySync != "" {
			return errors.New("latestDependencySync = " + e.Status.LatestDependencySync)
		}
		return nil
	})
	c.expectUnchanged(t, c.target, before)
}

// testDependencySync changes the dependencies again and syncs them.
func (c *fixture) testDependencySync(t *testing.T, environment string, before objects) {
	t.Helper()
	known := c.recordNames(t, environment, v1alpha1.SyncTypeDependency)
	c.applyToSource(t, fmt.Sprintf(needs, 3))
	record := c.nextRecord(t, environment, v1alpha1.SyncTypeDependency, known)
	c.waitForStatus(t, environment, "1 ConfigMap, 2 Secrets changed")
	offered := c.get(t, environment)
	if done := c.sync(t, environment, `{"spec":{"action":"Cluster"}}`); done != record {
		t.Errorf("record of the sync = %s, want %s", done, record)
	}
	c.waitForState(t, record, v1alpha1.SyncStateCompleted)
	c.waitForStatus(t, environment, "Synced")
	after := c.objectsIn(t, c.target)
	if page := text(after["ConfigMap pages"], "data", "index.html"); page != "hello-3" {
		t.Errorf("index.html = %q", page)
	}
	if token := text(after["Secret setup"], "data", "TOKEN"); token != base64.StdEncoding.EncodeToString([]byte("production-token-3")) {
		t.Errorf("token of the Secret was not synced")
	}
	for _, name := range []string{"Deployment api", "Service api"} {
		if before[name].GetGeneration() != after[name].GetGeneration() || before[name].GetUID() != after[name].GetUID() {
			t.Errorf("generation of %s changed from %d to %d", name, before[name].GetGeneration(), after[name].GetGeneration())
		}
	}
	e := c.waitFor(t, environment, "has a new time of the last dependency sync", func(e *v1alpha1.Environment) error {
		if e.Status.LastDependencySyncedAt.Before(c.record(t, record).Status.StartedAt) {
			return errors.New("lastDependencySyncedAt is unchanged")
		}
		return nil
	})
	if !e.Status.LastCatalogSyncedAt.Equal(offered.Status.LastCatalogSyncedAt) {
		t.Errorf("lastCatalogSyncedAt = %v, want %v", e.Status.LastCatalogSyncedAt, offered.Status.LastCatalogSyncedAt)
	}
}
