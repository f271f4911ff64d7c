// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	// instances is the number of ConfigMaps, in namespaces of perNamespace each; writers create them concurrently.
	instances, perNamespace, writers = 10_000, 100, 32
	// batchLimit is the number of objects in a batch.
	batchLimit = 1000
	fullRounds = 3
)

// full measures the time from the request of a full sync until its run is completed, and compares it with the time that kubectl
// takes to print the same objects as JSON. Both alternate.
func (s *testCluster) full(b *testing.B) {
	s.populate(b)
	receiver, pipeline := s.newPipeline(b, 0, 0)
	s.run(b, pipeline, v1alpha1.PipelineSyncSpec{})
	var fulls, gets []time.Duration
	before := len(receiver.Calls())
	for range fullRounds {
		gets = append(gets, s.get(b))
		fulls = append(fulls, s.run(b, pipeline, v1alpha1.PipelineSyncSpec{Full: true}))
	}
	if known := len(receiver.Known()); known < instances {
		b.Fatalf("receiver has %d objects", known)
	}
	slices.Sort(fulls)
	slices.Sort(gets)
	b.ReportMetric(fulls[fullRounds/2].Seconds(), "full-s")
	b.ReportMetric(gets[fullRounds/2].Seconds(), "get-s")
	b.ReportMetric(fulls[fullRounds/2].Seconds()/gets[fullRounds/2].Seconds(), "full/get")
	b.ReportMetric(float64(len(receiver.Calls())-before)/fullRounds, "calls")
}

// populate creates the ConfigMaps, of 1 KiB each.
func (s *testCluster) populate(b *testing.B) {
	b.Helper()
	text := strings.Repeat("x", 1024)
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(writers)
	for number := range instances {
		if number%perNamespace == 0 {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace(number)}}
			if _, err := s.cluster.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
				b.Fatal(err)
			}
		}
		group.Go(func() error {
			_, err := s.cluster.CoreV1().ConfigMaps(namespace(number)).Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("object-", number), Labels: map[string]string{"app": fmt.Sprint(number % perNamespace)}},
				Data:       map[string]string{"text": text},
			}, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

func namespace(number int) string { return fmt.Sprint("population-", number/perNamespace) }

// get returns how long kubectl takes to print all ConfigMaps.
func (s *testCluster) get(b *testing.B) time.Duration {
	b.Helper()
	command := s.Administrator.Command(b.Context(), "get", "configmaps", "-A", "-o", "json")
	command.Stdout = io.Discard
	began := time.Now()
	if err := command.Run(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// run requests a run and returns the time until it finished.
func (s *testCluster) run(b *testing.B, pipeline string, spec v1alpha1.PipelineSyncSpec) time.Duration {
	b.Helper()
	pipelines := s.slipstream.ConfigbutlerV1alpha1().SyncPipelines()
	began := time.Now()
	answer, err := pipelines.Sync(b.Context(), pipeline, &v1alpha1.PipelineSync{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	if run := answer.Status.Run; run != nil && run.Phase == v1alpha1.PipelineRunFinished {
		return time.Since(began)
	}
	mirrortest.Eventually(b, "the run has finished", func(ctx context.Context) error {
		found, err := pipelines.Get(ctx, pipeline, metav1.GetOptions{})
		if err == nil && (found.Status.LastRun == nil || found.Status.LastRun.ID != answer.Status.ID) {
			err = fmt.Errorf("currentRun = %+v", found.Status.CurrentRun)
		}
		return err
	})
	return time.Since(began)
}
