// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/syncpolicy"
	"github.com/configbutler/slipstream/pkg/generated/informers/externalversions"
)

// followPolicy tells when the settings change after they can be read for the first time, until stop is called. Ten changes
// during a sweep are one.
func (s *Sweeper) followPolicy(ctx context.Context) (changes <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	changed := make(chan struct{}, 1)
	tell := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	informers := externalversions.NewSharedInformerFactory(s.Client, 0)
	// It fails for an informer that has stopped only.
	_ = syncpolicy.Follow(informers.Configbutler().V1alpha1().SyncPolicies(), tell)
	informers.StartWithContext(ctx)
	informers.WaitForCacheSyncWithContext(ctx)
	return changed, func() {
		cancel()
		informers.Shutdown()
	}
}

// settings say how long records are kept, with the defaults where nothing is set.
func (s *Sweeper) settings(ctx context.Context) (v1alpha1.Retention, error) {
	policy, err := s.Client.ConfigbutlerV1alpha1().SyncPolicies().Get(ctx, v1alpha1.SyncPolicyName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		policy = &v1alpha1.SyncPolicy{}
	case err != nil:
		return v1alpha1.Retention{}, fmt.Errorf("reading the SyncPolicy: %w", err)
	}
	return syncpolicy.WithDefaults(policy).Spec.Retention, nil
}
