// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
	"github.com/configbutler/slipstream/pkg/kube/printable"
	"github.com/configbutler/slipstream/pkg/kube/restore"
)

const (
	// maxRows is the number of fields of an object that are shown.
	maxRows = 20
	// maxValue is how much of a value is shown, in characters.
	maxValue = 40
)

// preview shows what is to be written.
type preview struct {
	schemas *diff.Schemas
	out     io.Writer
}

// signs mark the lines of objects by what is done to them.
var signs = map[restore.Verb]string{restore.Create: "+", restore.Update: "~", restore.Recreate: "-/+", restore.Delete: "-"}

// print prints the steps that change something or that the API server refuses, and a summary.
func (p preview) print(ctx context.Context, steps []*restore.Step) error {
	counts := map[restore.Verb]int{}
	refused := 0
	for _, step := range steps {
		if len(step.Refusals) > 0 {
			refused++
		} else {
			counts[step.Verb]++
		}
		if step.Verb == restore.Keep {
			continue
		}
		if err := p.printStep(ctx, step); err != nil {
			return err
		}
	}
	var parts []string
	for _, part := range []struct {
		verb restore.Verb
		word string
	}{
		{restore.Update, "to update"}, {restore.Create, "to create"}, {restore.Recreate, "to delete and create"}, {restore.Delete, "to delete"},
		{restore.Keep, "unchanged"},
	} {
		if n := counts[part.verb]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, part.word))
		}
	}
	if refused > 0 {
		parts = append(parts, fmt.Sprintf("%d left as they are", refused))
	}
	if len(parts) == 0 {
		parts = []string{"nothing to write"}
	}
	_, err := fmt.Fprintln(p.out, strings.Join(parts, ", "))
	return err
}

func (p preview) printStep(ctx context.Context, step *restore.Step) error {
	sign := signs[step.Verb]
	if len(step.Refusals) > 0 {
		sign = "!"
	}
	if _, err := fmt.Fprintf(p.out, "%s %s\n", sign, printable.Line(step.String())); err != nil {
		return err
	}
	for _, remark := range remarks(step) {
		if _, err := fmt.Fprintf(p.out, "    %s\n", printable.Line(remark)); err != nil {
			return err
		}
	}
	if step.Live == nil || step.Write == nil {
		return nil
	}
	return p.printFields(ctx, step)
}

// remarks say what else a step does, or why it is not executed.
func remarks(step *restore.Step) (out []string) {
	for _, refusal := range step.Refusals {
		out = append(out, "refused: "+refusal.String())
	}
	if step.Replaceable {
		out = append(out, fmt.Sprintf("--recreate %s/%s deletes and creates it", step.Resource.GroupResource(), step.Name))
	}
	deletes := step.Verb == restore.Delete || step.Verb == restore.Recreate
	if lost := restore.Consequence(step.Kind.GroupKind()); deletes && lost != "" && len(step.Refusals) == 0 {
		out = append(out, lost)
	}
	return out
}

// printFields prints a table of the fields that are to change: as they were, as they are, and as they will be.
func (p preview) printFields(ctx context.Context, step *restore.Step) error {
	now, written := contentOf(step.Live), contentOf(step.Write)
	if step.Result != nil {
		written = contentOf(step.Result)
	}
	paths := map[string]fieldpath.Path{}
	for _, pair := range [][2]*unstructured.Unstructured{{now, written}, {step.Wanted, written}} {
		differences, err := p.schemas.Compare(ctx, pair[0], pair[1])
		if err != nil {
			return err
		}
		for _, d := range differences {
			paths[d.Path.String()] = d.Path
		}
	}
	table := printers.GetNewTabWriter(p.out)
	_, _ = fmt.Fprintln(table, "    FIELD\tTHEN\tNOW\tWRITTEN") // Flush has the error.
	for i, text := range slices.Sorted(maps.Keys(paths)) {
		if i == maxRows {
			_, _ = fmt.Fprintf(table, "    and %d more\t\t\t\n", len(paths)-maxRows)
			break
		}
		path := paths[text]
		_, _ = fmt.Fprintf(table, "    %s\t%s\t%s\t%s\n", printable.Line(text), shown(step, step.Wanted, path), shown(step, now, path),
			shown(step, written, path))
	}
	return table.Flush()
}

// shown returns the text of a field's value. Values of Secrets are hidden.
func shown(step *restore.Step, content *unstructured.Unstructured, path fieldpath.Path) string {
	value, exists := path.Lookup(content.Object)
	if !exists {
		return "<none>"
	}
	if step.Kind.GroupKind() == secretKind && path[0].Field != "type" && path[0].Field != "immutable" {
		return hiddenValue
	}
	text, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	return printable.Line(cli.Shorten(string(text), maxValue))
}
