// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
)

const (
	// watchPause is the time between two watches. A server ends each after some time.
	watchPause = time.Second
	// redrawPause is the time in which changes are gathered before a terminal is drawn again.
	redrawPause = 200 * time.Millisecond
	// clearScreen moves to the first line of a terminal and removes what is below.
	clearScreen = "\x1b[H\x1b[2J"
)

// update is what a watch brings: changed objects, deleted objects, or all objects of a resource.
type update struct {
	resource     string
	columns      columns
	rows         []*row
	deleted, all bool
}

// statusWatch shows changes as they come.
type statusWatch struct {
	*status
	view    view
	printer *statusPrinter
	// shown are the lines that were printed last, by object.
	shown map[object]string
}

// run prints a tree, and then changes until ctx ends.
func (w *statusWatch) run(ctx context.Context, roots []*line) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	updates := make(chan update)
	for resource, version := range w.versions {
		go func() {
			if err := w.follow(ctx, resource, version, updates); err != nil {
				cancel(err)
			}
		}()
	}
	w.shown = w.texts(roots)
	if cli.IsTerminal(w.Out) {
		return w.redraw(ctx, updates)
	}
	w.printer.fill = true
	if err := w.printer.print(roots); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case u := <-updates:
			if err := w.apply(u); err != nil {
				return err
			}
			if err := w.printChanges(); err != nil {
				return err
			}
		}
	}
}

// redraw draws the tree on a terminal, again after changes.
func (w *statusWatch) redraw(ctx context.Context, updates <-chan update) error {
	due := time.After(0)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case u := <-updates:
			if err := w.apply(u); err != nil {
				return err
			}
			if due == nil {
				due = time.After(redrawPause)
			}
		case <-due:
			due = nil
			if err := w.draw(); err != nil {
				return err
			}
		}
	}
}

// draw draws the tree at once, so that a terminal does not flicker.
func (w *statusWatch) draw() error {
	var text strings.Builder
	text.WriteString(clearScreen)
	p := *w.printer
	p.out, p.width, p.height = &text, cli.Width(w.Out), cli.Height(w.Out)
	if err := p.print(w.view.tree(w.selector)); err != nil {
		return err
	}
	_, err := fmt.Fprint(w.Out, text.String())
	return err
}

// apply updates the view.
func (w *statusWatch) apply(u update) error {
	kind := w.view[u.resource]
	if u.all {
		for of, r := range kind.rows {
			if w.namespace != "" && of.namespace != w.namespace {
				u.rows = append(u.rows, r) // A catalog that only its environments bring here.
			}
		}
		return w.view.set(u.resource, u.columns, u.rows)
	}
	if u.columns != nil {
		kind.columns = u.columns
	}
	for _, r := range u.rows {
		of := object{u.resource, r.namespace, r.name}
		if u.deleted {
			delete(kind.rows, of)
		} else {
			kind.rows[of] = r
		}
	}
	return nil
}

// texts returns the text of each line of a tree.
func (w *statusWatch) texts(roots []*line) map[object]string {
	texts := map[object]string{}
	for _, l := range flat(roots) {
		texts[l.object] = strings.Join(w.printer.cells(l, "").texts, "\t")
	}
	return texts
}

// printChanges prints the lines that differ from those that were printed last.
func (w *statusWatch) printChanges() error {
	roots := w.view.tree(w.selector)
	texts := w.texts(roots)
	for _, l := range flat(roots) {
		if before, known := w.shown[l.object]; known && before == texts[l.object] {
			continue
		}
		if err := w.printer.printLine(l); err != nil {
			return err
		}
	}
	for _, of := range slices.SortedFunc(maps.Keys(w.shown), compareObjects) {
		if _, exists := texts[of]; !exists {
			if err := w.printer.printLine(&line{object: of, state: "Deleted"}); err != nil {
				return err
			}
		}
	}
	w.shown = texts
	return nil
}

// follow sends the changes of a resource until ctx ends. It survives restarts of the server, and lists the resource again if the server does
// not have the events since the last one any more.
func (w *statusWatch) follow(ctx context.Context, resource, version string, updates chan<- update) error {
	lost := false
	for ctx.Err() == nil {
		next, err := w.events(ctx, resource, version, updates)
		if version = next; err != nil && ctx.Err() == nil {
			version, err = w.again(ctx, resource, version, updates)
		}
		var status apierrors.APIStatus
		if errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError {
			return err
		}
		if err != nil && ctx.Err() == nil && !lost {
			w.note("Trying again: %v", err)
		}
		lost = err != nil
		select {
		case <-time.After(watchPause):
		case <-ctx.Done():
		}
	}
	return nil
}

// again lists a resource and sends all of its objects. It returns the resourceVersion to continue from, also with an error.
func (w *statusWatch) again(ctx context.Context, resource, version string, updates chan<- update) (string, error) {
	rows, of, current, err := w.tables.list(ctx, resource, w.namespace, w.selectorOf(resource))
	if err != nil {
		return version, err
	}
	return current, send(ctx, updates, update{resource: resource, columns: of, rows: rows, all: true})
}

// events sends changes until the server ends the watch. It returns the resourceVersion to continue from, also with an error.
func (w *statusWatch) events(ctx context.Context, resource, version string, updates chan<- update) (string, error) {
	events, err := w.tables.watch(ctx, resource, w.namespace, w.selectorOf(resource), version)
	if err != nil {
		return version, err
	}
	err = cli.EachEvent(ctx, events, func(event watch.Event) error {
		table, ok := event.Object.(*metav1.Table)
		if !ok {
			return apierrors.FromObject(event.Object)
		}
		rows, err := rowsOf(table)
		if err != nil {
			return err
		}
		for _, r := range rows {
			version = r.version
		}
		if event.Type == watch.Bookmark {
			return nil
		}
		return send(ctx, updates, update{resource: resource, columns: columnsOf(table), rows: rows, deleted: event.Type == watch.Deleted})
	})
	return version, err
}

func send(ctx context.Context, updates chan<- update, u update) error {
	select {
	case updates <- u:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
