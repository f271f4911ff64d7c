// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"fmt"
	"io"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// answerWidth is how much of a sink's response fits on a line of a terminal beside the other columns.
const answerWidth = 80

// printRun prints a table of what a run has sent to which sink, or why there is none.
func printRun(out io.Writer, answer *v1alpha1.PipelineSync) error {
	run := answer.Status.Run
	if answer.Status.Message != "" || run == nil {
		_, err := fmt.Fprintln(out, printable.Text(answer.Status.Message))
		if err != nil || run == nil {
			return err
		}
	}
	table := printers.GetNewTabWriter(out)
	_, _ = fmt.Fprintln(table, "SINK\tSENT\tREJECTED\tLEFT\tANSWER") // Flush has the error.
	for _, sink := range run.Sinks {
		_, _ = fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%s\n",
			printable.Line(sink.Name), sink.Done-sink.Rejected, sink.Rejected, sink.Total-sink.Done,
			cli.Shorten(summary.Line(sink.Answer), answerWidth))
	}
	return table.Flush()
}
