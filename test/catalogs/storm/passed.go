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
	"github.com/configbutler/slipstream/test/mirrortest"
)

// lookInterval leaves the server to its work: whoever looks reads what the catalogs hold of every workload.
const lookInterval = 500 * time.Millisecond

// Passed waits until both catalogs offer each of their Deployments as it is.
func (s *Storm) Passed(t testing.TB) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), lookInterval, mirrortest.Deadline, true, func(ctx context.Context) (bool, error) {
		last = cmp.Or(s.offers(ctx, everything, 1), s.offers(ctx, half, 2))
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("the catalogs offer what there is: %v (last: %v)", err, last)
	}
}

// offers says how a catalog differs from the source, of which it follows every so many Deployment.
func (s *Storm) offers(ctx context.Context, catalog string, every int) error {
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
	return fmt.Errorf("%s offers something else of %d of %d workloads: %v", catalog, len(offered), len(want), offered)
}

func selected(catalog string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: v1alpha1.LabelCatalog + "=" + catalog}
}

// Records expects that each catalog has one record a window, and that they tell of everything that the storm has changed,
// and returns the number of windows. It is about the first storm of a namespace, after it has passed.
func (s *Storm) Records(t testing.TB, window time.Duration) int {
	t.Helper()
	s.expect(t, half, 2, window)
	return s.expect(t, everything, 1, window)
}

// expect returns how many records a catalog of every so many Deployment has of the storm. A window begins after the one before
// has ended, and times are of seconds.
func (s *Storm) expect(t testing.TB, catalog string, every int, window time.Duration) (windows int) {
	t.Helper()
	list, err := s.slipstream.ConfigbutlerV1alpha1().SyncStatuses(namespace).List(t.Context(), selected(catalog))
	if err != nil {
		t.Fatal(err)
	}
	records := slices.SortedFunc(slices.Values(list.Items), func(a, b v1alpha1.SyncStatus) int { return cmp.Compare(a.Status.Revision, b.Status.Revision) })
	changed := sets.New[string]()
	var last time.Time
	for i, record := range records[1:] {
		status, detected := &record.Status, record.Status.DetectedAt.Time
		if status.State != v1alpha1.SyncStateAutoApplied || status.Actor != "" || int(status.Revision) != i+2 {
			t.Errorf("%s, the record %d, is %s by %q of revision %d", record.Name, i+2, status.State, status.Actor, status.Revision)
		}
		if int(status.WorkloadCount) != len(status.WorkloadNames) {
			t.Errorf("%s counts %d workloads, and names %d", record.Name, status.WorkloadCount, len(status.WorkloadNames))
		}
		if i > 0 && detected.Sub(last) < window {
			t.Errorf("%s is about changes since %s, and the one before since %s: that is less than %s", record.Name, detected, last, window)
		}
		last = detected
		changed.Insert(status.WorkloadNames...)
	}
	want := sets.New[string]()
	for number := 0; number < len(s.images); number += every {
		want.Insert(name(number))
	}
	if !changed.Equal(want) {
		t.Errorf("the records of %s do not name %v, and name %v that the catalog does not have", catalog,
			sets.List(want.Difference(changed)), sets.List(changed.Difference(want)))
	}
	return len(records) - 1
}

// NothingDropped expects that the server never had to compare the whole namespace, because changes of it did not get through. It
// is for benchmarks, which have the machine to themselves: on a busy one such a comparison is right, and Passed and Records show
// that nothing is lost by it.
func NothingDropped(t testing.TB, stage *mirrortest.Stage) {
	t.Helper()
	for _, counter := range []string{
		`slipstream_catalog_intake_resyncs_total{reason="overflow"}`, `slipstream_catalog_intake_resyncs_total{reason="missed"}`,
		`slipstream_catalog_intake_resyncs_total{reason="unreadable"}`,
	} {
		if n, err := stage.Counted(t.Context(), counter); err != nil || n != 0 {
			t.Errorf("%s is %v: %v", counter, n, err)
		}
	}
}
