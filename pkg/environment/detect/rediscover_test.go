// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/configbutler/slipstream/pkg/environment/syncer"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/apply"
	"github.com/configbutler/slipstream/pkg/environment/detect"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
	"github.com/configbutler/slipstream/pkg/store/table"
)

var (
	web      = environmenttest.Deployment("web", "envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: database}}]")
	settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {value: '1'}}"
	database = "{apiVersion: v1, kind: Secret, metadata: {name: database}, data: {password: aHVudGVyMg==}}"
)

// rediscoveryFixture returns a fixture with an environment of a catalog that offers web.
func rediscoveryFixture(t *testing.T) *fixture {
	t.Helper()
	s, cluster := newFixture(t), environmenttest.NewCluster(t)
	in := func(text string) *unstructured.Unstructured {
		o := environmenttest.Object(t, text)
		o.SetNamespace(production)
		return o
	}
	for _, text := range []string{settings, database} {
		cluster.Put(in(text))
	}
	catalog := environmenttest.Catalog()
	offered := environmenttest.Offer(t, catalog, in(web))
	s.api.Put(offered)
	s.api.Put(catalog)
	s.add("alice")
	kept := copies.New(table.New(s.kv, test), 10)
	s.runner = &syncer.Syncer{
		StateReader: &syncer.StateReader{
			Slipstream: s.api.Client.ConfigbutlerV1alpha1(), Client: cluster.Client(), Metadata: cluster.Metadata(), Mapper: cluster.Mapper(),
			Limiter: flowcontrol.NewFakeAlwaysRateLimiter(), Concurrency: 4, Planner: planner, Copies: kept, Clock: s.clock,
		},
		Applier: &apply.Applier{Concurrency: 4}, Copies: kept, Records: s.api, Dependencies: s.api.Client.ConfigbutlerV1alpha1(), Index: s.index,
	}
	return s
}

// recorded returns the records of an environment, each as a line.
func (s *fixture) recorded(environment string) (lines []string) {
	s.Helper()
	for _, d := range s.dependencies(environment) {
		line := fmt.Sprintf("%s hash=%s seen=%s missing=%v", d.Status.Source.Name, d.Status.Hash, d.Status.SeenHash, d.Status.Missing)
		for _, by := range d.Status.ReferredBy {
			line += " <" + by.Name
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

func TestRediscover(t *testing.T) {
	s := rediscoveryFixture(t)
	before := s.copied("alice", "settings")
	before.Hash, before.Missing, before.SeenHash = "0a", false, "0b"
	s.record("alice", []v1alpha1.EnvironmentDependencyRecord{before, s.copied("alice", "forgotten")})
	detector := detect.New(s.config())
	for range 2 { // The second time changes nothing.
		if err := detector.Rediscover(t.Context(), named("alice")); err != nil {
			t.Fatal(err)
		}
		want := []string{"database hash= seen= missing=false <web", "settings hash=0a seen=0b missing=false <web"}
		if got := s.recorded("alice"); !slices.Equal(got, want) {
			t.Errorf("records: %q, want %q", got, want)
		}
		if wrong := s.index.Rebuild(s.dependencies("alice"), s.index.Revision()); len(wrong) > 0 || s.index.Len() != 2 {
			t.Errorf("the index differs from the records: %v", wrong)
		}
	}
}

func TestRediscoverWithoutRevision(t *testing.T) {
	s := rediscoveryFixture(t)
	s.change("alice", func(e *v1alpha1.Environment) { e.Status.AppliedRevision = 0 })
	detector := detect.New(s.config())
	if err := detector.Rediscover(t.Context(), named("alice")); err != nil || len(s.recorded("alice")) > 0 {
		t.Errorf("error %v, records %q", err, s.recorded("alice"))
	}
	if err := detector.Rediscover(t.Context(), named("missing")); err == nil {
		t.Error("missing environment was rediscovered")
	}
}

// TestRediscoveredIsRecorded checks that objects that a rediscovery finds are recorded as added.
func TestRediscoveredIsRecorded(t *testing.T) {
	s := begunFixture(t)
	s.windowPasses()
	known := s.copied("bob", "settings")
	found := s.copied("bob", "queue")
	found.Hash = ""
	missing := s.copied("bob", "never-there")
	s.record("bob", []v1alpha1.EnvironmentDependencyRecord{known, found, missing})
	s.stays("bob Pending* Added ConfigMap queue")
}
