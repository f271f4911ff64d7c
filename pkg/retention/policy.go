// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
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
	_, _ = informers.Configbutler().V1alpha1().SyncPolicies().Informer().AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, initial bool) {
			if !initial {
				tell()
			}
		},
		UpdateFunc: func(before, after any) {
			if contentOf(before) != contentOf(after) {
				tell()
			}
		},
		DeleteFunc: func(any) { tell() },
	})
	informers.StartWithContext(ctx)
	informers.WaitForCacheSyncWithContext(ctx)
	return changed, func() {
		cancel()
		informers.Shutdown()
	}
}

// content is equal for two versions of a policy with the same spec. The status changes with every sweep.
type content struct {
	uid        types.UID
	generation int64
}

func contentOf(object any) content {
	policy, ok := object.(*v1alpha1.SyncPolicy)
	if !ok {
		return content{}
	}
	return content{policy.UID, policy.Generation}
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
	return withDefaults(policy).Spec.Retention, nil
}

// withDefaults is a policy as an API server of this version returns it.
func withDefaults(policy *v1alpha1.SyncPolicy) *v1alpha1.SyncPolicy {
	policy = policy.DeepCopy()
	v1alpha1.SetObjectDefaults_SyncPolicy(policy)
	return policy
}
