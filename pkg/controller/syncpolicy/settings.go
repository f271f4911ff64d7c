// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package syncpolicy returns the spec of the SyncPolicy, which all catalogs and environments share, and watches its changes.
package syncpolicy

import (
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	informers "github.com/configbutler/slipstream/pkg/generated/informers/externalversions/configbutler/v1alpha1"
	listers "github.com/configbutler/slipstream/pkg/generated/listers/configbutler/v1alpha1"
)

// Of returns the spec of the SyncPolicy, with the defaults if it does not exist.
func Of(policies listers.SyncPolicyLister) *v1alpha1.SyncPolicySpec {
	policy, err := policies.Get(v1alpha1.SyncPolicyName)
	if err != nil {
		policy = &v1alpha1.SyncPolicy{} // The only error of a cache is NotFound.
	}
	return &WithDefaults(policy).Spec
}

// WithDefaults returns a policy as an API server of this version returns it.
func WithDefaults(policy *v1alpha1.SyncPolicy) *v1alpha1.SyncPolicy {
	policy = policy.DeepCopy()
	v1alpha1.SetObjectDefaults_SyncPolicy(policy)
	return policy
}

// Follow calls changed whenever the spec has changed after the informer's first list. Updates of the status are ignored.
func Follow(policies informers.SyncPolicyInformer, changed func()) error {
	_, err := policies.Informer().AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, initial bool) {
			if !initial {
				changed()
			}
		},
		UpdateFunc: func(before, after any) {
			was, known := before.(*v1alpha1.SyncPolicy)
			is, ok := after.(*v1alpha1.SyncPolicy)
			if known && ok && (was.UID != is.UID || was.Generation != is.Generation) {
				changed()
			}
		},
		DeleteFunc: func(any) { changed() },
	})
	if err != nil {
		return fmt.Errorf("watch the SyncPolicy: %w", err)
	}
	return nil
}
