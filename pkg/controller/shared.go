// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/trace"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/controller/events"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/pkg/generated/informers/externalversions"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// Records writes the kinds that the API serves read-only, such as SyncStatuses.
type Records interface {
	// Write creates or replaces a record, and returns the stored one.
	Write(ctx context.Context, record runtime.Object) (runtime.Object, error)
}

// Process holds what the controllers share for the life of the process. All fields are required by the controllers that use them.
type Process struct {
	// Client reads and writes the objects of this server's API.
	Client versioned.Interface
	// Cluster reads and writes the other objects of the cluster, with the server's own permissions.
	Cluster *watch.Clients
	// Types are the resource types that the cluster serves. The caller runs them.
	Types *watch.Types
	// Access checks the permissions of the users on whose behalf the controllers work.
	Access access.Reviewer
	// Events records Events in the cluster.
	Events events.Recorder
	// Store is the work store, which holds what must survive the process and is not an object.
	Store *table.Store
	Clock clock.WithTicker
	// Tracing starts the traces of the controllers; nil if there are none.
	Tracing trace.TracerProvider
}

// Shared is what the controllers of one leader term share: what the process has, and the caches that are filled anew in each term.
type Shared struct {
	*Process

	// Records writes SyncStatuses, CatalogWorkloads and GitDestinationStatuses.
	Records Records
	// Informers cache the objects of this server's API. Controllers register their handlers and indexes in Setup. The names of
	// indexes begin with the name of the controller.
	Informers externalversions.SharedInformerFactory
	// Namespaces cache the metadata of the cluster's namespaces.
	Namespaces *watch.Namespaces

	// cleanups run when the term is over.
	cleanups []func()
}

// NewShared returns the Shared of one term, whose caches are empty until Run.
func NewShared(process *Process, records Records) (*Shared, error) {
	namespaces, err := watch.NewNamespaces(process.Cluster.Metadata)
	if err != nil {
		return nil, err
	}
	return &Shared{
		Process: process, Records: records, Namespaces: namespaces,
		Informers: externalversions.NewSharedInformerFactoryWithOptions(process.Client, 0, externalversions.WithTransform(trim)),
	}, nil
}

// Cleanup registers a function that is called when the term is over, after all controllers have stopped. Functions are called in
// reverse order.
func (s *Shared) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

// cleanup calls the functions of Cleanup.
func (s *Shared) cleanup() {
	for i := len(s.cleanups) - 1; i >= 0; i-- {
		s.cleanups[i]()
	}
	s.cleanups = nil
}

// start fills the caches and keeps them up to date until ctx is done. The returned function waits for their end.
func (s *Shared) start(ctx context.Context) (stopped func()) {
	var group wait.Group
	s.Informers.StartWithContext(ctx)
	group.StartWithContext(ctx, s.Namespaces.Run)
	return func() {
		s.Informers.Shutdown()
		group.Wait()
	}
}

// waitForSync waits until the caches hold everything that exists. Before that, a controller must not conclude that an object, a
// namespace or a type does not exist. It must be called after start, because it only waits for informers that were started.
func (s *Shared) waitForSync(ctx context.Context) error {
	for kind, synced := range s.Informers.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("wait for the cache of %s: %w", kind, context.Cause(ctx))
		}
	}
	if !s.Namespaces.WaitForSync(ctx) {
		return fmt.Errorf("wait for the cache of namespaces: %w", context.Cause(ctx))
	}
	if !s.Types.WaitForSync(ctx) {
		return fmt.Errorf("wait for the resource types of the cluster: %w", context.Cause(ctx))
	}
	return nil
}
