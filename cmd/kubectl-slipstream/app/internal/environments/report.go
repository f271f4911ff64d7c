// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// stateWidth is how much of a state fits in 100 columns beside the others.
const stateWidth = 50

// report prints what has come of a request, and returns its error.
func (r *requester) report(a *answer) error {
	if a.object == nil {
		return a.err
	}
	for _, record := range a.records {
		for _, warning := range record.Status.Warnings {
			_, _ = fmt.Fprintln(r.ErrOut, "Warning: "+printable.Line(warning)) // Nothing depends on it.
		}
	}
	if r.Output.OutputFlagSpecified() {
		return cmp.Or(r.printObjects(a), a.err)
	}
	_, err := fmt.Fprintf(r.Out, "%s: %s\n", printable.Line(a.of.Named(a.name)), printable.Line(a.state+recordNames(a)))
	if err == nil {
		err = printFailures(r.Out, a.records)
	}
	if err == nil && a.plan != nil {
		err = (&diffPrinter{out: r.Out, colours: cli.HasColours(r.Out), now: time.Now()}).print(a.plan)
	}
	return cmp.Or(err, a.err)
}

// reportAll prints a table of what has come of requests for several objects. It returns an error with the highest exit code.
func (r *requester) reportAll(answers []*answer) error {
	var worst error
	failed := 0
	for _, a := range answers {
		if a.err != nil {
			failed++
		}
		if cli.ExitCode(a.err) > cli.ExitCode(worst) {
			worst = a.err
		}
	}
	err := r.printAll(answers)
	if worst == nil {
		return err
	}
	return cmp.Or(err, fmt.Errorf("%d of %d syncs did not succeed, such as: %w", failed, len(answers), worst))
}

// printAll prints the objects or a table of answers.
func (r *requester) printAll(answers []*answer) error {
	if r.Output.OutputFlagSpecified() {
		return r.printObjects(answers...)
	}
	table := printers.GetNewTabWriter(r.Out)
	_, _ = fmt.Fprintln(table, "NAME\tSTATE\tRECORD") // Flush has the error.
	for _, a := range answers {
		state := a.state
		if a.object == nil {
			state, _, _ = strings.Cut(a.err.Error(), "\n")
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", printable.Line(a.of.Named(a.name)), cli.Shorten(summary.Line(state), stateWidth), firstRecord(a))
	}
	return table.Flush()
}

// printObjects prints responses in the format of the flag.
func (r *requester) printObjects(answers ...*answer) error {
	printer, err := r.Output.ToPrinter()
	if err != nil {
		return err
	}
	for _, a := range answers {
		if a.object == nil {
			continue
		}
		if a.outcome != nil {
			a.outcome.Message = a.state
		}
		if err := printer.PrintObj(a.object, r.Out); err != nil {
			return err
		}
	}
	return nil
}

// recordNames returns the records of a request in parentheses.
func recordNames(a *answer) string {
	if len(a.records) == 0 {
		return ""
	}
	names := make([]string, len(a.records))
	for i, record := range a.records {
		names[i] = record.Name
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// firstRecord returns the name of the first record of a request.
func firstRecord(a *answer) string {
	if a.outcome == nil || len(a.outcome.SyncStatuses) == 0 {
		return ""
	}
	return printable.Line(a.outcome.SyncStatuses[0])
}

// printFailures prints the objects that failed.
func printFailures(out io.Writer, records []*v1alpha1.SyncStatus) error {
	for _, record := range records {
		for _, failure := range record.Status.Failures {
			line := fmt.Sprintf("  %s %s/%s: %s", failure.Type, failure.Namespace, failure.Name, failure.Message)
			if _, err := fmt.Fprintln(out, printable.Line(line)); err != nil {
				return err
			}
		}
	}
	return nil
}
