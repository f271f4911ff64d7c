// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	typed "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
)

// comparePeriod is the interval at which the index is compared with the EnvironmentDependencies.
const comparePeriod = time.Hour

// indexUpdater keeps the index equal to the EnvironmentDependencies.
type indexUpdater struct {
	api   typed.EnvironmentDependenciesGetter
	index *index.Index
	clock clock.WithTicker
}

// rebuild rebuilds the index from the EnvironmentDependencies, and returns how many entries differed.
func (u *indexUpdater) rebuild(ctx context.Context) (differences int, err error) {
	mark := u.index.Revision()
	records, err := u.api.EnvironmentDependencies(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("list the EnvironmentDependencies: %w", err)
	}
	return len(u.index.Rebuild(records.Items, mark)), nil
}

// run periodically rebuilds the index until ctx ends. A difference is a bug in this server, unless a user has deleted a
// record.
func (u *indexUpdater) run(ctx context.Context) {
	ticker := u.clock.NewTicker(comparePeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		differences, err := u.rebuild(ctx)
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
