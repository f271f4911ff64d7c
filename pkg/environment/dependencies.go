// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// comparePeriod is how often the index is compared with the EnvironmentDependencies.
const comparePeriod = time.Hour

// readIndex makes the index what the EnvironmentDependencies say, and returns in how many places it differed.
func (c *environments) readIndex(ctx context.Context) (differences int, err error) {
	index := c.config.Runner.Index
	mark := index.Revision()
	records, err := c.api.EnvironmentDependencies(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("list the EnvironmentDependencies: %w", err)
	}
	return len(index.Rebuild(records.Items, mark)), nil
}

// compareUntil keeps comparing the index with the EnvironmentDependencies until ctx ends. Every difference is a defect of this
// server, or somebody has deleted a record.
func (c *environments) compareUntil(ctx context.Context) {
	ticker := c.shared.Clock.NewTicker(comparePeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		differences, err := c.readIndex(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			klog.FromContext(ctx).Error(err, "The index of dependencies cannot be compared, trying again later")
		case differences > 0:
			klog.FromContext(ctx).Info("The index of dependencies differed from the EnvironmentDependencies, and was made anew", "differences", differences)
		}
		indexDifferences.Add(float64(differences))
	}
}
