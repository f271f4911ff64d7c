// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notification

import (
	"context"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/notification/delivery"
)

// Config is what a Controller needs beside controller.Shared. All fields are required unless their comment says otherwise.
type Config struct {
	// Namespace is that of the server, whose sinks send the notifications of all namespaces.
	Namespace string
	// Cluster is the name of the cluster in notifications.
	Cluster string
	// Connect returns the receiver of a sink.
	Connect func(sink *v1alpha1.NotificationSink) (delivery.Receiver, error)
	// Diff returns the fields that a Change changed, with their values. Optional: without it, only paths are sent.
	Diff func(ctx context.Context, change *v1alpha1.Change) (*v1alpha1.ChangeDiff, error)
}

// Controller sends the notifications of NotificationSinks.
type Controller struct {
	Config Config
}

var _ controller.Controller = &Controller{}

// controllerName is the name of the controller in logs, metrics and names of indexes.
const controllerName = "notification"

// Name is "notification".
func (c *Controller) Name() string { return controllerName }

// Setup implements controller.Controller.
func (c *Controller) Setup(_ context.Context, shared *controller.Shared) (controller.Run, error) {
	s, err := newSinks(c.Config, shared)
	if err != nil {
		return nil, err
	}
	return s.runUntil, nil
}

// may reports whether the user on whose behalf a sink sends has a permission.
func (s *sinks) may(ctx context.Context, sink *v1alpha1.NotificationSink, permission access.Permission) (bool, error) {
	lost, err := s.shared.Access.Check(ctx, access.Notifying(sink), []access.Permission{permission})
	return err == nil && lost == "", err //nolint:wrapcheck // it says who may not be checked
}

// maySee reports whether that user may see the Changes of objects of a type in a namespace: as in the API, those who may get the objects.
func (s *sinks) maySee(ctx context.Context, sink *v1alpha1.NotificationSink, group, resource, namespace string) (bool, error) {
	return s.may(ctx, sink, access.Permission{
		Verbs: []string{"get"}, Namespace: namespace, Group: group, Resources: []string{resource},
	})
}
