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

// needs are another version of what the api needs: a Secret of an init container's envFrom, a ConfigMap in a projected volume,
// a pull secret.
const needs = `
{apiVersion: v1, kind: Secret, metadata: {name: setup}, stringData: {TOKEN: production-token-%[1]d}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: pages}, data: {index.html: hello-%[1]d}}
---
{apiVersion: v1, kind: Secret, metadata: {name: pull}, type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: '{"auths":{"v%[1]d":{}}}'}}
`

// needed are they, as records have them.
var needed = []string{"ConfigMap pages Changed", "Secret pull Changed", "Secret setup Changed"}

// depend has what workloads refer to change in production, for two environments that have it and one that has not.
func (s *stage) depend(t *testing.T) {
	c := s.newScene(t, "depend", shop, workloads("api"))
	c.catalog(t, "jobs", workloads("worker"))
	c.newTarget(t, "depend-bob")
	c.newTarget(t, "depend-carol")
	c.environment(t, "alice")
	c.environmentIn(t, "bob", "depend-bob")
	c.environmentIn(t, "carol", "depend-carol", catalogRef+"{name: jobs}")
	for _, name := range []string{"alice", "bob", "carol"} {
		c.synced(t, name, all)
	}
	before := s.in(t, c.target)

	c.produce(t, fmt.Sprintf(needs, 2))
	for _, name := range []string{"alice", "bob"} {
		c.says(t, name, "1 ConfigMap, 2 Secrets changed")
		c.expectPrompt(t, name, needed...)
	}
	c.onlyTheNext(t, "carol")
	s.unmoved(t, c.target, before)
	c.dismissed(t, "alice", before)
	c.refreshed(t, "alice", before)
	c.says(t, "bob", "1 ConfigMap, 2 Secrets changed")
}

// expectPrompt expects one record of an environment's dependencies, which waits and tells of objects.
func (c *scene) expectPrompt(t *testing.T, environment string, want ...string) *v1alpha1.SyncStatus {
	t.Helper()
	records, err := c.records(t.Context(), environment, v1alpha1.SyncTypeDependency)
	if err != nil || len(records) != 1 {
		t.Fatalf("%s has %d records of dependencies: %v%s", environment, len(records), err, c.tell(t.Context()))
	}
	record := &records[0]
	if record.Status.State != v1alpha1.SyncStatePending || !slices.Equal(changed(record), want) {
		t.Errorf("%s of %s is %s and tells of %q, want %q", record.Name, environment, record.Status.State, changed(record), want)
	}
	if latest := c.get(t, environment).Status.LatestDependencySync; latest != record.Name {
		t.Errorf("%s offers %s, not %s", environment, latest, record.Name)
	}
	return record
}

// onlyTheNext changes what an environment of the worker needs, and expects it to be told of nothing else, and no other of that.
func (c *scene) onlyTheNext(t *testing.T, environment string) {
	t.Helper()
	c.produce(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: jobs}, data: {every: day}}")
	c.next(t, environment, v1alpha1.SyncTypeDependency, nil)
	c.says(t, environment, "1 ConfigMap changed")
	c.expectPrompt(t, environment, "ConfigMap jobs Changed")
	for _, other := range []string{"alice", "bob"} {
		c.expectPrompt(t, other, needed...)
	}
}

// dismissed has dave put a prompt aside.
func (c *scene) dismissed(t *testing.T, environment string, before objects) {
	t.Helper()
	record := c.get(t, environment).Status.LatestDependencySync
	c.asks(t, c.dave, "environments/"+environment+"/dismiss", all)
	if by := c.rests(t, record, v1alpha1.SyncStateDismissed).Status.ResolvedBy; by != "dave" {
		t.Errorf("%s is dismissed by %q", record, by)
	}
	c.says(t, environment, "Dismissed: 1 ConfigMap, 2 Secrets changed")
	c.becomes(t, environment, "offers nothing", func(e *v1alpha1.Environment) error {
		if e.Status.LatestDependencySync != "" {
			return errors.New("it offers " + e.Status.LatestDependencySync)
		}
		return nil
	})
	c.unmoved(t, c.target, before)
}

// refreshed has production change once more, and dave take that.
func (c *scene) refreshed(t *testing.T, environment string, before objects) {
	t.Helper()
	known := c.known(t, environment, v1alpha1.SyncTypeDependency)
	c.produce(t, fmt.Sprintf(needs, 3))
	record := c.next(t, environment, v1alpha1.SyncTypeDependency, known)
	c.says(t, environment, "1 ConfigMap, 2 Secrets changed")
	offered := c.get(t, environment)
	if done := c.sync(t, environment, `{"spec":{"action":"Cluster"}}`); done != record {
		t.Errorf("%s carries out what %s tells of", done, record)
	}
	c.rests(t, record, v1alpha1.SyncStateCompleted)
	c.says(t, environment, "Synced")
	after := c.in(t, c.target)
	if page := text(after["ConfigMap pages"], "data", "index.html"); page != "hello-3" {
		t.Errorf("the ConfigMap has %q", page)
	}
	if token := text(after["Secret setup"], "data", "TOKEN"); token != base64.StdEncoding.EncodeToString([]byte("production-token-3")) {
		t.Errorf("the Secret has another token")
	}
	for _, name := range []string{"Deployment api", "Service api"} {
		if before[name].GetGeneration() != after[name].GetGeneration() || before[name].GetUID() != after[name].GetUID() {
			t.Errorf("%s has come from generation %d to %d", name, before[name].GetGeneration(), after[name].GetGeneration())
		}
	}
	e := c.becomes(t, environment, "has another time", func(e *v1alpha1.Environment) error {
		if e.Status.LastDependencySyncedAt.Before(c.record(t, record).Status.StartedAt) {
			return errors.New("it has not")
		}
		return nil
	})
	if !e.Status.LastCatalogSyncedAt.Equal(offered.Status.LastCatalogSyncedAt) {
		t.Errorf("the catalog was synced at %v, not at %v", e.Status.LastCatalogSyncedAt, offered.Status.LastCatalogSyncedAt)
	}
}
