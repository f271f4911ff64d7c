// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
)

// beside has fakes of the other parts of the controller. The test sets their results.
type beside struct {
	mu sync.Mutex
	// left are the objects that cannot be removed.
	left []string
	// failure is the error of Remove.
	failure error
	// removed are the environments whose content has been removed.
	removed  []string
	ready    *ready
	detector *detector
	rights   *environmenttest.Rights
}

// Remove removes everything but what is left.
func (b *beside) Remove(_ context.Context, e *v1alpha1.Environment, _ ...schema.GroupKind) ([]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failure != nil {
		return nil, b.failure
	}
	if len(b.left) == 0 {
		b.removed = append(b.removed, e.Name)
	}
	return slices.Clone(b.left), nil
}

func (b *beside) leave(left ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = left
}

// fail sets the error of Remove.
func (b *beside) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failure = err
}

// ready reports all workloads as ready, except for the deleted ones.
type ready struct{ deleted atomic.Int32 }

func (*ready) Run(ctx context.Context) { <-ctx.Done() }

func (r *ready) Of(*v1alpha1.Environment) (*v1alpha1.WorkloadsReady, []string) {
	existing := 2 - r.deleted.Load()
	return &v1alpha1.WorkloadsReady{Ready: existing, Total: existing}, nil
}

// detector counts its requests.
type detector struct {
	mu           sync.Mutex
	rediscovered int
	// following has the functions through which the detector and the controller notify each other.
	following following
	// failure is the result of Rediscover.
	failure error
}

// fail sets the error of Rediscover; nil makes it succeed.
func (d *detector) fail(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failure = why
}

// follow sets whom the detector notifies.
func (d *detector) follow(of following) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.following = of
}

// changed notifies environments that their sources have changed.
func (d *detector) changed(environments ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range environments {
		if d.following.changed == nil {
			return // No process runs: the next one plans everything.
		}
		d.following.changed(types.NamespacedName{Namespace: environmenttest.Teams, Name: name})
	}
}

func (*detector) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (*detector) PolicyChanged() {}

func (*detector) SourcesChanged() {}

// Rediscover counts its calls.
func (d *detector) Rediscover(context.Context, types.NamespacedName) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rediscovered++
	return d.failure
}
