// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// otherKinds are workloads of all kinds except Deployments.
const otherKinds = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: main, image: shop/db}]}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: main, image: shop/agent}]}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: cache}
spec:
  selector: {matchLabels: {app: cache}}
  template: {metadata: {labels: {app: cache}}, spec: {containers: [{name: main, image: shop/cache}]}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec:
  schedule: 0 3 * * *
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: shop/report}]}}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: import}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: shop/import}]}}}
`

// ofEveryKind is the part of a spec with a workload of each kind.
const ofEveryKind = `  workloads: [{kind: Deployment, name: api}, {kind: StatefulSet, name: db}, {kind: DaemonSet, name: agent},
    {kind: ReplicaSet, name: cache}, {kind: CronJob, name: report}, {kind: Job, name: import}]
`

// add is an annotation that ann sets.
const note = "shop.example.com/note"

// testAllKinds creates, changes and deletes workloads of every kind.
func (s *testCluster) testAllKinds(t *testing.T) {
	c := s.newFixture(t, "kinds")
	c.Apply(t, people.In(c.source, "admin", s.ann.Name)+people.In(c.source, "view", s.eve.Name))
	if _, err := s.ann.Kubectl.Feed(t.Context(), otherKinds, "apply", "-n", c.source, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	c.edit(t, "shop", ofEveryKind)
	record := c.waitForRecords(t, "shop", 1)
	names := []string{"agent", "api", "cache", "db", "import", "report"}
	if record.Status.State != v1alpha1.SyncStateApplied || !slices.Equal(record.Status.WorkloadNames, names) {
		t.Errorf("first record: state %s, workloads %q", record.Status.State, record.Status.WorkloadNames)
	}
	c.HaveCondition(t, c.team, "SourceReachable", "cat/shop")

	objects := []string{"deployment/api", "statefulset/db", "daemonset/agent", "replicaset/cache", "cronjob/report", "job/import"}
	s.ann.Run(t, append(append([]string{"annotate", "-n", c.source}, objects...), note+"=second")...)
	c.waitForAll(t, "has the change", func(w *v1alpha1.CatalogWorkloadRecord) error {
		var object metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(w.Manifest.Raw, &object); err != nil {
			return err
		}
		if got := object.Annotations[note]; got != "second" || w.Missing {
			return fmt.Errorf("note = %q", got)
		}
		return nil
	})
	c.expectChanges(t, names)

	s.ann.Run(t, append([]string{"delete", "-n", c.source}, objects...)...)
	c.waitForAll(t, "is missing", func(w *v1alpha1.CatalogWorkloadRecord) error {
		if !w.Missing {
			return errors.New("missing = false")
		}
		return nil
	})
}

// waitForAll waits until a check succeeds for all six workloads of the catalog.
func (c *fixture) waitForAll(t *testing.T, what string, check func(*v1alpha1.CatalogWorkloadRecord) error) {
	t.Helper()
	mirrortest.Eventually(t, "a workload of each kind "+what, func(ctx context.Context) error {
		workloads, err := c.workloads(ctx, "shop")
		if err != nil {
			return err
		}
		if len(workloads) != len(v1alpha1.WorkloadResources()) {
			return fmt.Errorf("%d workloads", len(workloads))
		}
		for i := range workloads {
			if err := check(&workloads[i].Status); err != nil {
				return fmt.Errorf("%s: %w", workloads[i].Name, err)
			}
		}
		return nil
	})
}

// expectChanges expects the records after the first one to contain exactly these workloads, changed by ann. A change that is found by the
// comparison that follows a list may have no author.
func (c *fixture) expectChanges(t *testing.T, want []string) {
	t.Helper()
	records, err := c.records(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, record := range records[1:] {
		got = append(got, record.Status.WorkloadNames...)
		other := func(author v1alpha1.SourceAuthor) bool { return author.Username != c.ann.Name }
		if by := record.Status.ChangedBy; slices.ContainsFunc(by, other) || record.Status.State != v1alpha1.SyncStateAutoApplied {
			t.Errorf("record in state %s of %s was changed by %+v", record.Status.State, strings.Join(record.Status.WorkloadNames, ", "), by)
		}
	}
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("workloads in records = %q, want %q", got, want)
	}
}
