// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
)

// longWatch is how long a watch lasts at least that ends because the server ends each after some time.
const longWatch = time.Minute

// watchPauses are the times between two watches: a second, and longer while they fail, since each that fails is followed by a list.
func watchPauses() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 5, Cap: 10 * time.Second}
}

// TableUpdate is what a watch brings: changed objects, deleted objects, or all objects of a resource.
type TableUpdate struct {
	Resource     string
	Columns      Columns
	Rows         []*Row
	Deleted, All bool
}

// TableHandler receives what Follow finds. Its functions are called one at a time.
type TableHandler struct {
	// Update is called with each change.
	Update func(TableUpdate)
	// Lost is called with the error of the first attempt to watch or list that fails. Once one succeeds after that, Update is called with all
	// objects.
	Lost func(error)
}

// Follow calls the handler with the changes of objects since a resourceVersion until ctx ends. It survives restarts of the server, and lists
// the objects again if the server no longer has the events since the last one. It returns the error of a request that the server refuses.
func (t *Tables) Follow(ctx context.Context, of Selection, version string, handler TableHandler) error {
	impatient := *t
	impatient.retries = fewRetries
	f := &tableFollower{tables: &impatient, of: of, version: version, handler: handler}
	pauses := watchPauses()
	for ctx.Err() == nil {
		began := time.Now()
		received, err := f.follow(ctx)
		if received || time.Since(began) >= longWatch {
			pauses = watchPauses()
		}
		var status apierrors.APIStatus
		if errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError {
			return err
		}
		if err != nil && ctx.Err() == nil && !f.lost {
			f.lost = true
			handler.Lost(err)
		}
		select {
		case <-time.After(pauses.Step()):
		case <-ctx.Done():
		}
	}
	return nil
}

// tableFollower follows objects.
type tableFollower struct {
	tables  *Tables
	of      Selection
	handler TableHandler
	// version is the resourceVersion from which the next watch continues.
	version string
	// lost is set after a failed attempt, until one succeeds.
	lost bool
}

// follow watches until the server ends the watch, and reports whether there were events. It lists the objects after each watch: the client
// also returns one without events if it cannot connect, and no event says that the user may not read an object any more.
func (f *tableFollower) follow(ctx context.Context) (received bool, err error) {
	if f.lost {
		if err := f.list(ctx); err != nil {
			return false, err
		}
	}
	received, err = f.events(ctx)
	if ctx.Err() == nil {
		return received, f.list(ctx)
	}
	return received, err
}

// list lists the objects, and updates the handler with all of them.
func (f *tableFollower) list(ctx context.Context) error {
	all, err := f.tables.List(ctx, f.of)
	if err != nil {
		return err
	}
	f.lost, f.version = false, all.Version
	f.handler.Update(TableUpdate{Resource: f.of.Resource, Columns: all.Columns, Rows: all.Rows, All: true})
	return nil
}

// events updates the handler with changes until the server ends the watch, and reports whether there were events.
func (f *tableFollower) events(ctx context.Context) (received bool, err error) {
	events, err := f.tables.watch(ctx, f.of, f.version)
	if err != nil {
		return false, err
	}
	err = EachEvent(ctx, events, func(event watch.Event) error {
		table, ok := event.Object.(*metav1.Table)
		if !ok {
			return apierrors.FromObject(event.Object)
		}
		received = true
		rows, err := rowsOf(table)
		if err != nil {
			return err
		}
		for _, r := range rows {
			f.version = r.Version
		}
		if event.Type == watch.Bookmark {
			return nil
		}
		f.handler.Update(TableUpdate{Resource: f.of.Resource, Columns: columnsOf(table), Rows: rows, Deleted: event.Type == watch.Deleted})
		return nil
	})
	return received, err
}
