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

// comparePeriod is the interval at which the index is compared with the EnvironmentDependencies.
const comparePeriod = time.Hour

// readIndex rebuilds the index from the EnvironmentDependencies, and returns how many entries differed.
func (c *environments) readIndex(ctx context.Context) (differences int, err error) {
	index := c.config.Runner.Index
	mark := index.Revision()
	records, err := c.api.EnvironmentDependencies(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("list the EnvironmentDependencies: %w", err)
	}
	return len(index.Rebuild(records.Items, mark)), nil
}

// compareUntil periodically rebuilds the index until ctx ends. A difference is a bug in this server, unless a user has deleted a
// record.
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
			klog.FromContext(ctx).Error(err, "Failed to compare the index of dependencies, retrying later")
		case differences > 0:
			klog.FromContext(ctx).Info("Rebuilt the index of dependencies, which differed from the EnvironmentDependencies",
				"differences", differences)
		}
		indexDifferences.Add(float64(differences))
	}
}
