// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// pollInterval is long enough to leave the server idle between polls, which read all workloads of the catalogs.
const pollInterval = 500 * time.Millisecond

// WaitForCatalogs waits until both catalogs offer the current state of each of their Deployments.
func (s *Storm) WaitForCatalogs(t testing.TB) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, mirrortest.Deadline, true, func(ctx context.Context) (bool, error) {
		last = cmp.Or(s.compare(ctx, everything, 1), s.compare(ctx, half, 2))
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("wait until the catalogs are up to date: %v (last: %v)", err, last)
	}
}

// compare returns an error if a catalog of every n-th Deployment differs from the source.
func (s *Storm) compare(ctx context.Context, catalog string, every int) error {
	list, err := s.slipstream.ConfigbutlerV1alpha1().CatalogWorkloads(namespace).List(ctx, selected(catalog))
	if err != nil {
		return err
	}
	offered := map[string]string{}
	for i := range list.Items {
		if offered[list.Items[i].Status.Name], err = imageOf(&list.Items[i]); err != nil {
			return err
		}
	}
	want := map[string]string{}
	for number := 0; number < len(s.images); number += every {
		want[name(number)] = s.images[number]
	}
	if maps.Equal(offered, want) {
		return nil
	}
	maps.DeleteFunc(offered, func(workload, image string) bool { return want[workload] == image })
	return fmt.Errorf("%s differs in %d of %d workloads: %v", catalog, len(offered), len(want), offered)
}

func selected(catalog string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: v1alpha1.LabelCatalog + "=" + catalog}
}

// CheckRecords expects that each catalog has at most one record per window, and that the records contain everything that the
// storm has changed. It returns the number of windows. It must be called after the first storm of a namespace and
// WaitForCatalogs.
func (s *Storm) CheckRecords(t testing.TB, window time.Duration) int {
	t.Helper()
	s.expect(t, half, 2, window)
	return s.expect(t, everything, 1, window)
}

// expect checks the records of a catalog of every n-th Deployment, and returns their number. A window begins after the previous one
// has ended, except that the first may be cut short: edits are recorded after the changes before them, and on a busy machine the server
// may not have seen yet that it has recorded the creation of the catalogs. Times have a resolution of seconds.
func (s *Storm) expect(t testing.TB, catalog string, every int, window time.Duration) (windows int) {
	t.Helper()
	list, err := s.slipstream.ConfigbutlerV1alpha1().SyncStatuses(namespace).List(t.Context(), selected(catalog))
	if err != nil {
		t.Fatal(err)
	}
	records := slices.SortedFunc(slices.Values(list.Items), func(a, b v1alpha1.SyncStatus) int {
		return cmp.Compare(a.Status.Revision, b.Status.Revision)
	})
	changed := sets.New[string]()
	var last time.Time
	for i, record := range records[1:] {
		status, detected := &record.Status, record.Status.DetectedAt.Time
		if status.State != v1alpha1.SyncStateAutoApplied || status.Actor != "" || int(status.Revision) != i+2 {
			t.Errorf("%s, record %d: state %s, actor %q, revision %d", record.Name, i+2, status.State, status.Actor, status.Revision)
		}
		if int(status.WorkloadCount) != len(status.WorkloadNames) {
			t.Errorf("%s: workloadCount = %d, %d names", record.Name, status.WorkloadCount, len(status.WorkloadNames))
		}
		if i > 1 && detected.Sub(last) < window {
			t.Errorf("%s: changes since %s, previous record since %s, want a window of %s", record.Name, detected, last, window)
		}
		last = detected
		changed.Insert(status.WorkloadNames...)
	}
	want := sets.New[string]()
	for number := 0; number < len(s.images); number += every {
		want.Insert(name(number))
	}
	if !changed.Equal(want) {
		t.Errorf("records of %s: missing %v, unexpected %v", catalog,
			sets.List(want.Difference(changed)), sets.List(changed.Difference(want)))
	}
	return len(records) - 1
}

// CheckNoResyncs expects that the server never had to resync a namespace because it missed changes. It is for benchmarks on an
// idle machine. On a busy one such resyncs are correct, and WaitForCatalogs and CheckRecords show that nothing is lost.
func CheckNoResyncs(t testing.TB, cluster *mirrortest.AdminCluster) {
	t.Helper()
	for _, counter := range []string{
		`slipstream_catalog_intake_resyncs_total{reason="overflow"}`, `slipstream_catalog_intake_resyncs_total{reason="missed"}`,
		`slipstream_catalog_intake_resyncs_total{reason="unreadable"}`,
	} {
		if n, err := cluster.Counted(t.Context(), counter); err != nil || n != 0 {
			t.Errorf("%s = %v: %v", counter, n, err)
		}
	}
}
