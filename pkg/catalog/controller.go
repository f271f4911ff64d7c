// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/store/commitindex"
)

// Authors finds out who made the changes that watches tell of.
type Authors interface {
	// Start has group do what there is to do until ctx ends, and returns when it knows what is known already.
	Start(ctx context.Context, group *wait.Group)
	// Listed says that a watch starts, or starts again.
	Listed(resource schema.GroupVersionResource, namespace string)
	// Observe takes note of an event that nobody asks about.
	Observe(event attribution.Event)
	// Submit calls deliver with the author of an event.
	Submit(ctx context.Context, event attribution.Event, deliver func(context.Context, attribution.Author)) error
	// FindSince returns the author of what a comparison has found that was another at a time.
	FindSince(event attribution.Event, since time.Time) attribution.Author
	// WaitingIn says whether an event of an object of the namespace has not been delivered yet.
	WaitingIn(namespace string) bool
}

var _ Authors = &attribution.Joiner{}

// Config is what a Controller needs beside controller.Shared. All fields are required unless their comment says otherwise.
type Config struct {
	// Namespace is the server's own, which no catalog follows; empty: it has none.
	Namespace string
	// CommitIndex has the commits that hold an object; nil if nothing is mirrored.
	CommitIndex *commitindex.Index
	// Facts are the reports of who made changes; nil: only what managedFields say is known.
	Facts attribution.Facts
	// Hash is the keyed hash of canonical content that facts have; nil: they have none.
	Hash func([]byte) string
	// AttributionMaxWait (--attribution-max-wait, 2 s) is the longest that a change waits for facts.
	AttributionMaxWait time.Duration
	// Capacity is how many changed objects can wait to be recorded; 0: pending.DefaultCapacity.
	Capacity int
	// Authors find out who makes changes; nil: by Facts.
	Authors Authors
}

// Controller keeps AppCatalogs up to date with the namespaces that they follow.
type Controller struct {
	Config Config
}

var _ controller.Controller = &Controller{}

// controllerName is the name of the controller in logs, metrics and names of indexes.
const controllerName = "catalog"

// Name is "catalog".
func (c *Controller) Name() string { return controllerName }

// Setup implements controller.Controller.
func (c *Controller) Setup(ctx context.Context, shared *controller.Shared) (controller.Run, error) {
	catalogs, err := newCatalogs(ctx, c.Config, shared)
	if err != nil {
		return nil, err
	}
	return catalogs.run, nil
}
