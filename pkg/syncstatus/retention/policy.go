// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/controller/syncpolicy"
)

// Controller runs a Sweeper.
type Controller struct {
	Config Config
}

var _ controller.Controller = &Controller{}

// Name is "retention".
func (*Controller) Name() string { return "retention" }

// Setup implements controller.Controller.
func (c *Controller) Setup(_ context.Context, shared *controller.Shared) (controller.Run, error) {
	// Several changes during a sweep start one more sweep.
	changed := make(chan struct{}, 1)
	err := syncpolicy.Follow(shared.Informers.Configbutler().V1alpha1().SyncPolicies(), func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return nil, err
	}
	sweeper := New(c.Config, shared.Process)
	return func(ctx context.Context) error { return sweeper.run(ctx, changed) }, nil
}

// retention returns the retention of the SyncPolicy, with defaults. It reads from the API, not from the cache: it is called before every
// batch, and a batch must not be deleted by a policy that has changed, or without an archive that has been configured meanwhile.
func (s *Sweeper) retention(ctx context.Context) (v1alpha1.Retention, error) {
	policy, err := s.process.Client.ConfigbutlerV1alpha1().SyncPolicies().Get(ctx, v1alpha1.SyncPolicyName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		policy = &v1alpha1.SyncPolicy{}
	case err != nil:
		return v1alpha1.Retention{}, fmt.Errorf("reading the SyncPolicy: %w", err)
	}
	return syncpolicy.WithDefaults(policy).Spec.Retention, nil
}
