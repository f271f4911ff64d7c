// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/registry"
)

// Server serves the API and runs the controllers.
type Server struct {
	Generic *genericapiserver.GenericAPIServer
	// Records writes the kinds that are served without create and update.
	Records *registry.Records
	// outlasting are the tasks of AddOutlasting.
	outlasting []func(ctx context.Context)
}

// AddBackground runs a task on every replica while the server listens. The task must return when its context is done.
func (s *Server) AddBackground(name string, task func(ctx context.Context)) error {
	return s.Generic.AddPostStartHook(name, func(hook genericapiserver.PostStartHookContext) error {
		go task(hook.Context)
		return nil
	})
}

// AddOutlasting runs a task on every replica from before the server listens until the last request is completed, so
// that it receives everything that requests hand over. Run waits for it.
func (s *Server) AddOutlasting(task func(ctx context.Context)) {
	s.outlasting = append(s.outlasting, task)
}

// AddManager starts a manager when the server listens, and stops it as the first step of a shutdown: controllers that finish their
// work still reach the API, and nothing uses the storage once it is closed.
func (s *Server) AddManager(manager *controller.Manager) error {
	drain, drained := make(chan struct{}), make(chan struct{})
	err := s.AddBackground("run-controllers", func(ctx context.Context) {
		defer close(drained)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			defer cancel()
			select {
			case <-drain:
			case <-ctx.Done():
			}
		}()
		manager.Run(ctx)
	})
	if err != nil {
		return fmt.Errorf("add the controllers: %w", err)
	}
	return s.Generic.AddPreShutdownHook("drain-controllers", func() error {
		close(drain)
		<-drained
		return nil
	})
}

// Run serves until ctx is done, then shuts down: the controllers are stopped, requests in flight are answered, the storage of
// the kinds is released, and the tasks that outlast requests end.
func (s *Server) Run(ctx context.Context) error {
	outlasting, end := context.WithCancel(context.WithoutCancel(ctx))
	var group wait.Group
	defer group.Wait()
	defer end()
	for _, task := range s.outlasting {
		group.StartWithContext(outlasting, task)
	}
	if err := s.Generic.PrepareRun().RunWithContext(ctx); err != nil {
		return fmt.Errorf("serving the API: %w", err)
	}
	return nil
}
