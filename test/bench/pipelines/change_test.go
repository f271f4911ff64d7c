// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

const (
	// changeDebounce and changeWait delay each change.
	changeDebounce, changeWait = time.Second, 100 * time.Millisecond
	changeWarmUp, changes      = 5, 40
	// changeLimit is the timeout for a change, with a margin for a busy machine.
	changeLimit = time.Minute
	// changed is the name of the ConfigMap and of its namespace.
	changed = "changed"
)

// change measures the time from the request of a change of a label until the receiver gets it, minus the debounce and the wait
// of a batch. The next change is made after that.
func (s *testCluster) change(b *testing.B) {
	s.Run(b, "create", "namespace", changed)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: changed}}
	if _, err := s.cluster.CoreV1().ConfigMaps(changed).Create(b.Context(), object, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	receiver, _ := s.newPipeline(b, changeDebounce, changeWait)
	var over []time.Duration
	for i := range changeWarmUp + changes {
		took := s.changeOnce(b, receiver, fmt.Sprint("number-", i))
		if i >= changeWarmUp {
			over = append(over, took-changeDebounce-changeWait)
		}
	}
	slices.Sort(over)
	b.ReportMetric(float64(over[len(over)/2])/float64(time.Millisecond), "p50-ms-over-waits")
	b.ReportMetric(float64(over[len(over)-1])/float64(time.Millisecond), "max-ms-over-waits")
}

// changeOnce sets a label and waits until the receiver gets the change.
func (s *testCluster) changeOnce(b *testing.B, receiver *receivertest.Receiver, label string) time.Duration {
	b.Helper()
	began := time.Now()
	patch := fmt.Sprintf(`{"metadata": {"labels": {"changed": %q}}}`, label)
	_, err := s.cluster.CoreV1().ConfigMaps(changed).Patch(b.Context(), changed, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), changeLimit)
	defer cancel()
	var call receivertest.Call
	err = receiver.Await(ctx, func() bool {
		calls := receiver.Calls()
		at := slices.IndexFunc(calls, func(call receivertest.Call) bool { return strings.Contains(string(call.Body), `"`+label+`"`) })
		if at >= 0 {
			call = calls[at]
		}
		return at >= 0
	})
	if err != nil {
		b.Fatal(err)
	}
	return call.At.Sub(began)
}
