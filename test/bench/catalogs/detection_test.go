// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

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

// detection measures the time from the request of a change until a watch receives its record, minus the batch window. The
// next change is made after that.
func (s *testCluster) detection(b *testing.B) {
	s.gather(b, detectionWindow)
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

// detection is a namespace with a Deployment and a catalog of it.
type detection struct {
	*testCluster
	cluster kubernetes.Interface
	records watch.Interface
}

// detectionNamespace is the source namespace, and the namespace of the catalog.
const detectionNamespace = "detection"

const detected = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: detection}
spec:
  paused: true
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "shop/web:0"}]}
---
apiVersion: configbutler.ai/v1alpha1
kind: AppCatalog
metadata: {name: shop, namespace: detection}
spec:
  sourceNamespace: detection
  workloads: [{kind: Deployment, name: web}]
`

func (d *detection) open(b *testing.B) {
	b.Helper()
	d.Run(b, "create", "namespace", detectionNamespace)
	var err error
	if d.records, err = d.slipstream.ConfigbutlerV1alpha1().SyncStatuses(detectionNamespace).Watch(b.Context(),
		metav1.ListOptions{}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(d.records.Stop)
	d.Apply(b, detected)
	d.next(b)
}

// once makes one change and waits for its record.
func (d *detection) once(b *testing.B, number int) time.Duration {
	b.Helper()
	began := time.Now()
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"shop/web:%d"}]}}}}`, number+1)
	_, err := d.cluster.AppsV1().Deployments(detectionNamespace).Patch(b.Context(), "web", types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{})
	if err != nil {
		b.Fatal(err)
	}
	d.next(b)
	return time.Since(began)
}

// next waits for the next record.
func (d *detection) next(b *testing.B) {
	b.Helper()
	timeout := time.After(detectionLimit)
	for {
		select {
		case event, open := <-d.records.ResultChan():
			if !open {
				b.Fatal("the watch has ended")
			}
			if _, ok := event.Object.(*v1alpha1.SyncStatus); ok && event.Type == watch.Added {
				return
			}
		case <-timeout:
			b.Fatal("no record before the timeout")
		}
	}
}
