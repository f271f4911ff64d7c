// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/configbutler/slipstream/pkg/controller/tracing"
)

// Controller is a controller that works on a Shared.
type Controller interface {
	// Name identifies the controller in logs, metrics and index names.
	Name() string
	// Setup prepares one term: it registers event handlers and indexes with shared and returns the function that works until its
	// context is done and stops everything that it started. The function is called once the caches are filled. If it returns
	// earlier, with or without an error, the term ends.
	Setup(ctx context.Context, shared *Shared) (Run, error)
}

// Run works until ctx is done.
type Run func(ctx context.Context) error

// Group is a Runner that runs controllers on one Shared.
type Group struct {
	process     *Process
	records     Records
	controllers []Controller
}

var _ Runner = &Group{}

// NewGroup returns a Group of controllers.
func NewGroup(process *Process, records Records, controllers ...Controller) *Group {
	return &Group{process: process, records: records, controllers: controllers}
}

// Name is "controllers".
func (g *Group) Name() string { return "controllers" }

// Run runs the controllers until ctx is done or one of them returns. It returns when all have returned.
func (g *Group) Run(ctx context.Context) error {
	shared, err := NewShared(g.process, g.records)
	if err != nil {
		return err
	}
	defer shared.cleanup()
	ctx = tracing.WithProvider(ctx, g.process.Tracing)
	runs := make([]Run, len(g.controllers))
	for i, c := range g.controllers {
		if runs[i], err = c.Setup(withName(ctx, c.Name()), shared); err != nil {
			return fmt.Errorf("set up controller %s: %w", c.Name(), err)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	defer shared.start(ctx)()
	for i, c := range g.controllers {
		group.Go(func() error {
			if err := shared.waitForSync(ctx); err != nil {
				return err
			}
			return ended(ctx, c.Name(), runs[i](withName(ctx, c.Name())))
		})
	}
	return group.Wait()
}
