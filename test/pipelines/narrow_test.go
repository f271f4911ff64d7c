// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/people"
)

// noConfigMaps lets a namespace have no ConfigMaps.
const noConfigMaps = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: batches, namespace: %s}, spec: {hard: {configmaps: '0'}}}"

// narrowed has a server start Jobs in a namespace that may read nothing but what their pipeline tells of. One of them ends before
// there is room for its batch.
func (s *stage) narrowed(t *testing.T) {
	c := s.newScene(t, "narrowed")
	c.employs(t)
	s.Apply(t, people.Everywhere("widget-readers", people.Server)+fmt.Sprintf(widgetReaders, c.group, "list, watch"))
	s.Apply(t, fmt.Sprintf(noConfigMaps, c.name))
	c.Run(t, "wait", "-n", c.name, "resourcequota/batches", "--for=jsonpath={.status.hard.configmaps}=0", "--timeout=180s")
	c.define(t, widgets)
	c.listens(t, prompt, noDefinitions, c.tellsOf(widgets)+fmt.Sprintf(worker, c.name, "containers"))

	created := c.create(t, "first", "tier=front")
	job := c.job(t, 1)
	c.sinkBecomes(t, "worker", "says what it has no room for", func(sink *v1alpha1.PipelineSinkStatus) error {
		if sink.LastError == nil || !strings.Contains(sink.LastError.Message, "exceeded quota: batches") {
			return fmt.Errorf("it says %+v", sink.LastError)
		}
		return nil
	})
	c.ends(t, &job, corev1.PodFailed)
	c.sinkBecomes(t, "worker", "says which Job has ended too early", func(sink *v1alpha1.PipelineSinkStatus) error {
		if sink.Rejected != 1 || sink.LastError == nil ||
			!strings.Contains(sink.LastError.Message, job.Name+" has ended before it got its batch") {
			return fmt.Errorf("%d are rejected: %+v", sink.Rejected, sink.LastError)
		}
		return nil
	})

	c.Run(t, "delete", "resourcequota", "batches", "-n", c.name)
	c.synced(t, all)
	job = c.job(t, 2)
	c.carries(t, &job, c.upserted(created, `{"tier":"front"}`))
	c.sinkBecomes(t, "worker", "has handed everything over", func(sink *v1alpha1.PipelineSinkStatus) error {
		if sink.Rejected != 0 || sink.Pending != 0 || sink.Delivered != 1 {
			return fmt.Errorf("%d are rejected, %d wait, %d are known", sink.Rejected, sink.Pending, sink.Delivered)
		}
		return nil
	})
}
