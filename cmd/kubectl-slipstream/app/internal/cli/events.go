// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"
)

// EachEvent calls visit with the events of a watch until the server ends it, and then stops it. It returns the error of visit, or the cause
// of ctx when ctx ends.
func EachEvent(ctx context.Context, events watch.Interface, visit func(watch.Event) error) error {
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case event, open := <-events.ResultChan():
			if !open {
				return nil
			}
			switch err := visit(event); {
			case err != nil && ctx.Err() != nil:
				return context.Cause(ctx) // The connection ends with ctx, which the last event may say in its own way.
			case err != nil:
				return err
			}
		}
	}
}
