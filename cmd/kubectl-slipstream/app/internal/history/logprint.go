// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// shortHash is the length of an abbreviated commit hash, as in Git.
const shortHash = 7

// changePrinter prints changes.
type changePrinter struct {
	out io.Writer
	// oneline prints lines without columns. namespaces adds the namespace of each object.
	oneline, namespaces bool
	now                 func() time.Time
	// patch prints a change with its diff; nil to print a line.
	patch func(*v1alpha1.Change) error
	// headed is set once the header is printed.
	headed bool
	// last are the names of the changes that were printed last.
	last []string
}

// maxLast is the number of names that are remembered, so that no change is printed twice.
const maxLast = 1000

// printed reports whether a change was printed, as one of the last.
func (p *changePrinter) printed(change *v1alpha1.Change) bool {
	return slices.Contains(p.last, change.Name)
}

// print prints changes in their order.
func (p *changePrinter) print(changes []v1alpha1.Change) error {
	for i := range changes {
		p.last = append(p.last, changes[i].Name)
	}
	p.last = p.last[max(0, len(p.last)-maxLast):]
	if p.patch != nil {
		for i := range changes {
			if err := p.patch(&changes[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if p.oneline {
		for i := range changes {
			if _, err := fmt.Fprintln(p.out, strings.Join(p.cells(&changes[i], p.onelineCells), " ")); err != nil {
				return err
			}
		}
		return nil
	}
	table := printers.GetNewTabWriter(p.out)
	if !p.headed {
		_, _ = fmt.Fprintln(table, strings.Join(p.header(), "\t")) // Flush has the error.
		p.headed = true
	}
	for i := range changes {
		_, _ = fmt.Fprintln(table, strings.Join(p.cells(&changes[i], p.tableCells), "\t"))
	}
	return table.Flush()
}

func (p *changePrinter) header() []string {
	header := []string{"WHEN", "WHO", "WHAT", "DID", "FIELDS", "COMMIT", "CHANGE"}
	if p.namespaces {
		header = append([]string{"NAMESPACE"}, header...)
	}
	return header
}

// cells returns the escaped texts of a change.
func (p *changePrinter) cells(change *v1alpha1.Change, of func(*v1alpha1.Change) []string) []string {
	cells := of(change)
	for i, cell := range cells {
		cells[i] = printable.Line(cell)
	}
	return cells
}

func (p *changePrinter) tableCells(change *v1alpha1.Change) []string {
	cells := []string{p.when(change), whoOf(change), whatOf(change), string(change.Spec.Operation), fieldpath.Summary(change.Spec.Fields, int(change.Spec.MoreFields)), commitOf(change), change.Name}
	if p.namespaces {
		cells = append([]string{change.Namespace}, cells...)
	}
	return cells
}

func (p *changePrinter) onelineCells(change *v1alpha1.Change) []string {
	what := whatOf(change)
	if p.namespaces && change.Spec.Object.Namespace != "" {
		what = change.Spec.Object.Namespace + " " + what
	}
	return []string{commitOf(change), p.when(change), whoOf(change), string(change.Spec.Operation), what}
}

// when returns the age of a change.
func (p *changePrinter) when(change *v1alpha1.Change) string {
	return duration.HumanDuration(p.now().Sub(change.Spec.Time.Time))
}

// whoOf returns who made a change: in parentheses the field manager if no user is known.
func whoOf(change *v1alpha1.Change) string {
	switch {
	case change.Spec.Author != nil:
		return change.Spec.Author.Username
	case change.Spec.FieldManager != "":
		return "(" + change.Spec.FieldManager + ")"
	}
	return "<unknown>"
}

// whatOf returns the object of a change.
func whatOf(change *v1alpha1.Change) string {
	if object := change.Spec.Object; object.Kind == "" {
		return object.Resource + "/" + object.Name
	}
	return change.Spec.Object.Kind + "/" + change.Spec.Object.Name
}

// commitOf returns the abbreviated hash of the first commit of a change.
func commitOf(change *v1alpha1.Change) string {
	if len(change.Spec.Commits) == 0 {
		return "<none>"
	}
	sha := change.Spec.Commits[0].SHA
	return sha[:min(shortHash, len(sha))]
}
