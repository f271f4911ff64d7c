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
	"github.com/configbutler/slipstream/pkg/history"
)

// Authors determines the authors of the changes that watches report.
type Authors interface {
	// Start starts background work in group, which continues until ctx ends. It returns once the facts that are already known have been read.
	Start(ctx context.Context, group *wait.Group)
	// Listed is called when a watch starts or restarts.
	Listed(resource schema.GroupVersionResource, namespace string)
	// Observe records an event whose author is not requested.
	Observe(event attribution.Event)
	// Submit calls deliver with the author of an event, once it is known or the maximum wait has passed.
	Submit(ctx context.Context, event attribution.Event, deliver func(context.Context, attribution.Author)) error
	// FindSince returns the author of a state that a comparison has found and that the object did not have at a time.
	FindSince(event attribution.Event, since time.Time) attribution.Author
	// AuditWait returns how long to wait until FindSince has all reports about the present state of an object.
	AuditWait(event attribution.Event) time.Duration
	// WaitingIn reports whether an event of an object of the namespace has not been delivered yet.
	WaitingIn(namespace string) bool
}

var _ Authors = &attribution.Joiner{}

// Config is what a Controller needs beside controller.Shared. All fields are required unless their comment says otherwise.
type Config struct {
	// Namespace is the namespace of the server, which cannot be a source. Empty if the server has none.
	Namespace string
	// History has the commits that contain an object; nil if no mirror runs in the process.
	History *history.History
	// Facts are the reports of who made changes; nil: authors are read from managedFields only.
	Facts attribution.Facts
	// Hash is the keyed hash of canonical content in facts; nil: facts have no hashes.
	Hash func([]byte) string
	// AttributionMaxWait (--attribution-max-wait, 2 s) is the maximum time that a change waits for facts.
	AttributionMaxWait time.Duration
	// Capacity is the maximum number of changed objects that wait to be recorded; 0: pending.DefaultCapacity.
	Capacity int
	// Authors determines the authors of changes; nil: an attribution.Joiner of Facts.
	Authors Authors
}

// Controller keeps AppCatalogs up to date with their source namespaces.
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
	reconciler, err := newReconciler(ctx, c.Config, shared)
	if err != nil {
		return nil, err
	}
	return reconciler.run, nil
}
