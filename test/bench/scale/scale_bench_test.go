// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/test/bench/fill"
	"github.com/configbutler/slipstream/test/bench/usage"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	// workloads is the number of workloads of the catalog, and so of each environment.
	workloads = 20
	// pipelines is the number of pipelines that send the workloads of a namespace.
	pipelines = 100
	// changes is the number of Changes in the history.
	changes = 200_000
	// rest is how long the server rests before its memory is measured: it returns what it does not need after 30 s to 60 s.
	rest = 65 * time.Second
	// caughtUp is the timeout of waits, with a margin for a busy machine.
	caughtUp = 30 * time.Minute
)

var environments = flag.Int("environments", 100, "number of environments")

// BenchmarkScale measures the API, the memory, and a start after a change that concerns all environments.
func BenchmarkScale(b *testing.B) {
	s := newTestCluster(b)
	s.createSource(b)
	s.createEnvironments(b)
	s.createPipelines(b)
	s.fillHistory(b)
	b.Run(fmt.Sprintf("environments=%d", *environments), func(b *testing.B) {
		for b.Loop() {
			s.restart(b)
			s.pages(b)
		}
		b.ReportMetric(0, "ns/op") // the duration of the measurement is not a result
	})
}

// testCluster is a cluster with the server.
type testCluster struct {
	*mirrortest.AdminCluster
	cluster    kubernetes.Interface
	slipstream versioned.Interface
}

func newTestCluster(b *testing.B) *testCluster {
	b.Helper()
	s := &testCluster{AdminCluster: mirrortest.NewAdminCluster(b, devcluster.Options{Audit: true, ServerProgram: usage.Server(b)})}
	s.cluster = mirrortest.Client(b, s.Admin())
	s.slipstream = mirrortest.ClientOf(b, s.Admin(), versioned.NewForConfig)
	return s
}

// fillHistory writes Changes to the files of the server, which is stopped then.
func (s *testCluster) fillHistory(b *testing.B) {
	b.Helper()
	if err := s.StopServer(b.Context(), syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	if err := fill.History(b.Context(), s.Env(devcluster.EnvDataDir), changes); err != nil {
		b.Fatal(err)
	}
}

// restart changes a workload of the source while the server is stopped, and measures the time from the start of the server until every
// environment has a prompt about it.
func (s *testCluster) restart(b *testing.B) {
	b.Helper()
	if err := s.StopServer(b.Context(), syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	s.changeSource(b)
	began := time.Now()
	if err := s.StartServer(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(time.Since(began).Seconds(), "start-s")
	eventually(b, "every environment has a prompt", func(ctx context.Context) error {
		return s.expectMetric(ctx, `slipstream_environment_prompts{about="catalog"}`, *environments)
	})
	b.ReportMetric(time.Since(began).Seconds(), "caught-up-s")
	server := s.Env(devcluster.EnvServerPIDs)
	b.ReportMetric(usage.CPU(b, server).Seconds(), "cpu-s")
	b.ReportMetric(usage.MiB(b, server, usage.Peak), "peak-MiB")
	select {
	case <-time.After(rest):
	case <-b.Context().Done():
		b.Fatal(context.Cause(b.Context()))
	}
	b.ReportMetric(usage.MiB(b, server, usage.Resident), "rss-MiB")
	b.ReportMetric(usage.MiB(b, server, usage.Anonymous), "anon-MiB")
}

// expectMetric returns an error unless a metric has a value.
func (s *testCluster) expectMetric(ctx context.Context, series string, want int) error {
	out, err := s.ReadServer(ctx, "/metrics")
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		if value, ok := strings.CutPrefix(line, series+" "); ok && strings.TrimSpace(value) == fmt.Sprint(want) {
			return nil
		} else if ok {
			return fmt.Errorf("%s is %s", series, strings.TrimSpace(value))
		}
	}
	return fmt.Errorf("no series %s", series)
}

// changeSource gives a workload of the source a new image.
func (s *testCluster) changeSource(b *testing.B) {
	b.Helper()
	name := "web-0"
	deployments := s.cluster.AppsV1().Deployments(source)
	found, err := deployments.Get(b.Context(), name, metav1.GetOptions{})
	if err != nil {
		b.Fatal(err)
	}
	found.Spec.Template.Spec.Containers[0].Image = fmt.Sprint("shop/web:", time.Now().Unix())
	if _, err := deployments.Update(b.Context(), found, metav1.UpdateOptions{}); err != nil {
		b.Fatal(err)
	}
}
