// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// noConfigMaps is a quota that allows no ConfigMaps in a namespace.
const noConfigMaps = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: batches, namespace: %s}, spec: {hard: {configmaps: '0'}}}"

// testMinimalPermissions uses a server that can read only the types of its pipeline, and start Jobs. One Job ends before its batch
// can be created.
func (s *testCluster) testMinimalPermissions(t *testing.T) {
	c := s.newFixture(t, "narrowed")
	c.allowJobs(t)
	s.Apply(t, people.Everywhere("widget-readers", people.Server)+fmt.Sprintf(widgetReaders, c.group, "list, watch"))
	s.Apply(t, fmt.Sprintf(noConfigMaps, c.name))
	c.HasField(t, c.name, "resourcequota/batches", "{.status.hard.configmaps}", "0")
	c.define(t, widgets)
	c.readyPipeline(t, prompt, noDefinitions, c.selects(widgets)+fmt.Sprintf(worker, c.name, "containers"))

	created := c.create(t, "first", "tier=front")
	job := c.job(t, 1)
	c.waitForSink(t, "worker", "reports the exceeded quota", func(sink *v1alpha1.PipelineSinkStatus) error {
		if sink.LastError == nil || !strings.Contains(sink.LastError.Message, "exceeded quota: batches") {
			return fmt.Errorf("lastError = %+v", sink.LastError)
		}
		return nil
	})
	c.endJob(t, &job, corev1.PodFailed)
	c.waitForSink(t, "worker", "reports the Job that ended early", func(sink *v1alpha1.PipelineSinkStatus) error {
		if sink.Rejected != 1 || sink.LastError == nil ||
			!strings.Contains(sink.LastError.Message, job.Name+" has ended before it got its batch") {
			return fmt.Errorf("%d rejected: %+v", sink.Rejected, sink.LastError)
		}
		return nil
	})

	c.Delete(t, c.name, "resourcequota/batches")
	c.mustSync(t, all)
	job = c.job(t, 2)
	c.expectBatch(t, &job, c.upserted(created, `{"tier":"front"}`))
	c.waitForSink(t, "worker", "has delivered everything", func(sink *v1alpha1.PipelineSinkStatus) error {
		if sink.Rejected != 0 || sink.Pending != 0 || sink.Delivered != 1 {
			return fmt.Errorf("%d rejected, %d pending, %d delivered", sink.Rejected, sink.Pending, sink.Delivered)
		}
		return nil
	})
}
