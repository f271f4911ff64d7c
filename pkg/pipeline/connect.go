// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/delivery"
	"github.com/configbutler/slipstream/pkg/pipeline/format"
)

// connect returns the delivery.Sink of a spec. The caller must close it.
func (c *pipelines) connect(p *pipeline, spec *v1alpha1.PipelineSink) (delivery.Sink, error) {
	cluster, err := c.config.SinkClient()
	if err != nil {
		return nil, err
	}
	source := format.Source{Pipeline: p.name, Sink: spec.Name}
	switch {
	case spec.HTTP != nil:
		source.Collection = spec.HTTP.Collection
		config := delivery.Config{Secrets: cluster.CoreV1(), Network: c.config.Network, Clock: c.shared.Clock}
		return delivery.NewHTTP(config, source, *spec.HTTP)
	case spec.Job != nil:
		return delivery.NewJob(cluster, source, *spec.Job)
	}
	return nil, fmt.Errorf("sink %s has neither http nor job", spec.Name)
}
