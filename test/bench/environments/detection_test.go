// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	// detectionWindow is the minimum batch window.
	detectionWindow = time.Second
	// detectionWarmUp is the number of changes before the measured ones: the server waits for authors with its maximum
	// timeout until it has measured the delay of their reports with 16 changes.
	detectionWarmUp  = 20
	detectionSamples = 40
	// detectionLimit is the timeout for a record, with a margin for a busy machine.
	detectionLimit = time.Minute
)

// detection measures the time from the request of a change, of a ConfigMap that an environment has a copy of, until a watch
// receives its record, minus the batch window. The record is dismissed before the next change.
func (s *testCluster) detection(b *testing.B) {
	s.Run(b, "patch", "syncpolicy", v1alpha1.SyncPolicyName,
		"--type=merge", "-p", fmt.Sprintf(`{"spec": {"batchWindow": %q}}`, detectionWindow))
	d := &detection{testCluster: s, cluster: mirrortest.Client(b, s.Admin())}
	d.open(b)
	var over []time.Duration
	for i := range detectionWarmUp + detectionSamples {
		if took := d.once(b, i); i >= detectionWarmUp {
			over = append(over, took-detectionWindow)
		}
	}
	slices.Sort(over)
	b.ReportMetric(float64(over[len(over)/2])/float64(time.Millisecond), "p50-ms-over-window")
	b.ReportMetric(float64(over[len(over)-1])/float64(time.Millisecond), "max-ms-over-window")
}

// detection is a namespace with a workload, a catalog of it, and an environment.
type detection struct {
	*testCluster
	cluster kubernetes.Interface
	records watch.Interface
}

// detectionSource is the source namespace with the catalog and the environment; detectionTarget is the target namespace.
const detectionSource, detectionTarget = "detection", "detected"

func (d *detection) open(b *testing.B) {
	b.Helper()
	d.newSource(b, detectionSource, 1)
	d.syncOnce(b, detectionSource, detectionTarget)
	var err error
	d.records, err = d.slipstream.ConfigbutlerV1alpha1().SyncStatuses(detectionSource).Watch(b.Context(), metav1.ListOptions{
		LabelSelector: v1alpha1.LabelSyncType + "=" + string(v1alpha1.SyncTypeDependency),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(d.records.Stop)
}

// once makes one change, waits for its record and dismisses it.
func (d *detection) once(b *testing.B, number int) time.Duration {
	b.Helper()
	began := time.Now()
	patch := fmt.Sprintf(`{"data": {"level": "%d"}}`, number)
	_, err := d.cluster.CoreV1().ConfigMaps(detectionSource).Patch(b.Context(), "settings-0", types.MergePatchType, []byte(patch),
		metav1.PatchOptions{})
	if err != nil {
		b.Fatal(err)
	}
	record := d.next(b)
	took := time.Since(began)
	if _, err := d.slipstream.ConfigbutlerV1alpha1().SyncStatuses(detectionSource).Dismiss(b.Context(), record, &v1alpha1.Dismissal{},
		metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	return took
}

// next waits for the next record and returns its name.
func (d *detection) next(b *testing.B) string {
	b.Helper()
	timeout := time.After(detectionLimit)
	for {
		select {
		case event, open := <-d.records.ResultChan():
			if !open {
				b.Fatal("the watch has ended")
			}
			if record, ok := event.Object.(*v1alpha1.SyncStatus); ok && event.Type == watch.Added {
				return record.Name
			}
		case <-timeout:
			b.Fatal("no record before the timeout")
		}
	}
}
