// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
	"github.com/configbutler/slipstream/pkg/kube/restore"
)

const blameExample = `  # Who has written each line of a Deployment
  kubectl slipstream blame deployment/web -n shop`

// defaultBlameChanges is the number of Changes that are read for the lines of an object.
const defaultBlameChanges = 200

// blame is the command blame.
type blame struct {
	session
	limit int
}

func newBlame(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	b := &blame{session: session{IOStreams: streams, config: config}}
	command := &cobra.Command{
		Use:   "blame TYPE/NAME",
		Short: "Print an object with when each line came, who wrote it, and the commit",
		Long: "Print the canonical YAML of an object in the cluster, each line with the age, the author and the commit of the change that it came\n" +
			"with. ^ marks lines that are as old as the oldest Change that is read, or older. If a Change cannot be read, for example because\n" +
			"history was rewritten, the lines that are left are marked as older. Values of Secrets are not shown.",
		Example: blameExample,
		Args:    cobra.RangeArgs(1, 2),
		RunE:    func(command *cobra.Command, args []string) error { return b.run(command.Context(), args) },
	}
	command.Flags().IntVar(&b.limit, "limit", defaultBlameChanges, "Maximum number of Changes that are read, the newest ones.")
	return command
}

func (b *blame) run(ctx context.Context, args []string) error {
	if b.limit < 1 {
		return fmt.Errorf("--limit is %d: it is at least 1", b.limit)
	}
	if err := b.connect(); err != nil {
		return err
	}
	return b.write(ctx, args)
}

// write prints the lines of an object.
func (b *blame) write(ctx context.Context, args []string) error {
	of, err := objectArgument(b.config, args)
	if err != nil {
		return err
	}
	if of.name == "" {
		return errors.New("name an object as TYPE/NAME")
	}
	changes, err := b.history(ctx, of, b.limit)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		return fmt.Errorf("%s has no Changes", of)
	}
	content, err := b.now(ctx, &changes[0])
	if err != nil {
		return err
	}
	lines, err := linesOf(content)
	if err != nil {
		return err
	}
	t := newTrace(lines)
	for i := range changes {
		if t.isComplete() {
			break
		}
		err := b.follow(ctx, t, &changes[i])
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			b.note("Change %s cannot be read, so the lines that came with it or earlier are marked as older: %v", changes[i].Name, err)
			t.stopped = true
			break
		}
	}
	return t.print(b.Out, time.Now())
}

// now returns the content of the object of a change in the cluster.
func (b *blame) now(ctx context.Context, change *v1alpha1.Change) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(change.Spec.Object.APIVersion)
	object.SetKind(change.Spec.Object.Kind)
	object.SetNamespace(change.Spec.Object.Namespace)
	object.SetName(change.Spec.Object.Name)
	id, err := b.identify(object)
	if err != nil {
		return nil, err
	}
	found, err := b.live(ctx, []restore.Object{id})
	if err != nil {
		return nil, err
	}
	if found[id] == nil {
		return nil, fmt.Errorf("%s does not exist any more: kubectl slipstream log lists its changes", id)
	}
	content, err := planner.Content(found[id])
	if err != nil || id.Kind.GroupKind() != secretKind {
		return content, err
	}
	content, _ = hidden(content, nil, true)
	return content, nil
}

// follow follows the lines through a change, from its content after it to the content before.
func (b *blame) follow(ctx context.Context, t *trace, change *v1alpha1.Change) error {
	difference, err := b.api.Changes(change.Namespace).Diff(ctx, change.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	before, after, err := decodedBoth(difference)
	if err != nil {
		return err
	}
	if change.Spec.Object.Resource == "secrets" && change.Spec.Object.APIVersion == "v1" {
		before, after = hideNamed(before, after, difference)
	}
	was, err := linesOf(before)
	if err != nil {
		return err
	}
	is, err := linesOf(after)
	if err != nil {
		return err
	}
	t.match(is, nil)
	t.match(was, change)
	t.oldest = change
	return nil
}

// hideNamed hides the values of a Secret. Those of fields that differ are hidden in different ways.
func hideNamed(before, after *unstructured.Unstructured, difference *v1alpha1.ChangeDiff) (a, b *unstructured.Unstructured) {
	a, _ = hidden(before, nil, true)
	b, _ = hidden(after, nil, true)
	data := mapAt(a, []string{"data"})
	for _, field := range difference.Fields {
		if key, ok := strings.CutPrefix(field.Field, "/data/"); ok && field.ChangeType == v1alpha1.ChangeChanged && data[key] != nil {
			data[key] = hiddenBefore
		}
	}
	return a, b
}

// trace follows the lines of a text back in time.
type trace struct {
	lines []string
	// changes are the changes that the lines came with, nil if it is not known yet. unrecorded are lines that no change has.
	changes    []*v1alpha1.Change
	unrecorded []bool
	// text is the text at the time that is reached, and origin the indexes of its lines in lines, -1 for lines that are not followed.
	text   []string
	origin []int
	// oldest is the oldest change that was followed. If stopped is set, the one before it could not be read.
	oldest  *v1alpha1.Change
	stopped bool
}

func newTrace(lines []string) *trace {
	t := &trace{lines: lines, changes: make([]*v1alpha1.Change, len(lines)), unrecorded: make([]bool, len(lines)), text: lines}
	for i := range lines {
		t.origin = append(t.origin, i)
	}
	return t
}

// isComplete reports whether the change of each line is known.
func (t *trace) isComplete() bool {
	for _, origin := range t.origin {
		if origin >= 0 {
			return false
		}
	}
	return true
}

// match goes back to an earlier text. Lines that it does not have came with the change, or with one that is not recorded if it is nil.
func (t *trace) match(text []string, change *v1alpha1.Change) {
	origin := make([]int, len(text))
	for i := range origin {
		origin[i] = -1
	}
	kept := make([]bool, len(t.lines))
	for _, block := range difflib.NewMatcherWithJunk(text, t.text, false, nil).GetMatchingBlocks() {
		for i := range block.Size {
			if at := t.origin[block.B+i]; at >= 0 {
				origin[block.A+i], kept[at] = at, true
			}
		}
	}
	for _, at := range t.origin {
		if at >= 0 && !kept[at] {
			t.changes[at], t.unrecorded[at] = change, change == nil
		}
	}
	t.text, t.origin = text, origin
}

// print prints the lines with their changes.
func (t *trace) print(out io.Writer, now time.Time) error {
	printer := changePrinter{now: func() time.Time { return now }}
	table := printers.GetNewTabWriter(out)
	for i, line := range t.lines {
		cells := []string{"", "", ""}
		switch change := t.changes[i]; {
		case change != nil:
			cells = []string{commitOf(change), whoOf(change), printer.when(change)}
		case t.unrecorded[i]:
			cells = []string{"", "not recorded", ""}
		case t.stopped:
			cells = []string{"", "older", ""}
		case t.oldest != nil:
			cells = []string{"^" + commitOf(t.oldest), "before", printer.when(t.oldest)}
		}
		for j := range cells {
			cells[j] = printable.Line(cells[j])
		}
		// Flush has the error.
		_, _ = fmt.Fprintf(table, "%s\t%s\n", strings.Join(cells, "\t"), printable.Line(strings.TrimSuffix(line, "\n")))
	}
	return table.Flush()
}
