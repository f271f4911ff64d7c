// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
)

const (
	// redrawPause is the time in which changes are gathered before a terminal is drawn again.
	redrawPause = 200 * time.Millisecond
	// clearScreen moves to the first line of a terminal and removes what is below.
	clearScreen = "\x1b[H\x1b[2J"
)

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
	updates := make(chan cli.TableUpdate)
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
func (w *statusWatch) redraw(ctx context.Context, updates <-chan cli.TableUpdate) error {
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
func (w *statusWatch) apply(u cli.TableUpdate) error {
	kind := w.view[u.Resource]
	if u.All {
		for of, r := range kind.rows {
			if w.namespace != "" && of.namespace != w.namespace {
				u.Rows = append(u.Rows, r) // A catalog that only its environments bring here.
			}
		}
		return w.view.set(u.Resource, u.Columns, u.Rows)
	}
	if u.Columns != nil {
		kind.columns = u.Columns
	}
	for _, r := range u.Rows {
		of := object{u.Resource, r.Namespace, r.Name}
		if u.Deleted {
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

// follow sends the changes of a resource until ctx ends.
func (w *statusWatch) follow(ctx context.Context, resource, version string, updates chan<- cli.TableUpdate) error {
	return w.tables.Follow(ctx, w.selection(resource), version, cli.TableHandler{
		Update: func(u cli.TableUpdate) {
			select {
			case updates <- u:
			case <-ctx.Done():
			}
		},
		Lost: func(err error) { w.note("Trying again: %v", err) },
	})
}
