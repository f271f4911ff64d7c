// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/receivertest"
)

// BenchmarkPipelines measures a server on the same machine as its control plane.
func BenchmarkPipelines(b *testing.B) {
	s := newTestCluster(b)
	measure := func(name string, run func(*testing.B)) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				run(b)
			}
			b.ReportMetric(0, "ns/op") // the duration of the measurement is not a result
		})
	}
	measure("Change", s.change)
	measure(fmt.Sprintf("Full/instances=%d", instances), s.full)
}

// testCluster is a cluster with the server.
type testCluster struct {
	*mirrortest.AdminCluster
	cluster    kubernetes.Interface
	slipstream versioned.Interface
}

func newTestCluster(b *testing.B) *testCluster {
	b.Helper()
	s := &testCluster{AdminCluster: mirrortest.NewAdminCluster(b, devcluster.Options{})}
	config, err := s.Admin().RESTConfig()
	if err != nil {
		b.Fatal(err)
	}
	config.QPS = -1 // no limit: kube-apiserver has its own
	if s.cluster, err = kubernetes.NewForConfig(config); err != nil {
		b.Fatal(err)
	}
	if s.slipstream, err = versioned.NewForConfig(config); err != nil {
		b.Fatal(err)
	}
	return s
}

// newPipeline starts a receiver and a pipeline that sends ConfigMaps to it until the benchmark ends.
func (s *testCluster) newPipeline(b *testing.B, debounce, maxWait time.Duration) (*receivertest.Receiver, string) {
	b.Helper()
	receiver := receivertest.New(b, v1alpha1.PipelineFormatClusterWhisperer)
	pipeline := &v1alpha1.SyncPipeline{
		ObjectMeta: metav1.ObjectMeta{Name: "bench-" + rand.String(5)},
		Spec: v1alpha1.SyncPipelineSpec{
			CustomResourceDefinitions: v1alpha1.DefinitionSource{Enabled: ptr.To(false)},
			Instances:                 v1alpha1.InstanceSource{Resources: []string{"configmaps"}},
			Debounce:                  &metav1.Duration{Duration: debounce},
			Batch:                     v1alpha1.PipelineBatch{MaxItems: ptr.To[int32](batchLimit), MaxWait: &metav1.Duration{Duration: maxWait}},
			Sinks: []v1alpha1.PipelineSink{{
				Name: "index", HTTP: &v1alpha1.HTTPSink{URL: receiver.URL, Format: v1alpha1.PipelineFormatClusterWhisperer},
			}},
		},
	}
	pipelines := s.slipstream.ConfigbutlerV1alpha1().SyncPipelines()
	if _, err := pipelines.Create(b.Context(), pipeline, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := pipelines.Delete(context.WithoutCancel(b.Context()), pipeline.Name, metav1.DeleteOptions{}); err != nil {
			b.Error(err)
		}
	})
	s.Ready(b, "pipe/"+pipeline.Name)
	return receiver, pipeline.Name
}
