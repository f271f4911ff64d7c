// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/kube/printable"
	"github.com/configbutler/slipstream/pkg/kube/restore"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// rewrite shows what is to be written, asks, and writes it.
type rewrite struct {
	session
	output *genericclioptions.PrintFlags
	yes    bool
	dryRun string
	// recreate are objects, as TYPE/NAME, that are deleted and created.
	recreate []string

	writer restore.Writer
	// leftOut are the objects that are not written, and why.
	leftOut []string
	// forbidden is set if objects are left out only because the user lacks permissions.
	forbidden bool
}

func (r *rewrite) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVarP(&r.yes, "yes", "y", false, "Write without asking.")
	flags.StringVar(&r.dryRun, "dry-run", cli.DryRunNone,
		"none, server or client: show what would be written, as the API server checks it, or without asking the server.")
	flags.Lookup("dry-run").NoOptDefVal = cli.DryRunServer
	flags.StringArrayVar(&r.recreate, "recreate", nil,
		"Delete and create this object, as TYPE/NAME, instead of an update, because it has fields that cannot be changed. "+
			"Not for Namespaces and CustomResourceDefinitions. Can be repeated.")
	r.output.AddFlags(command)
}

// prepare checks the flags and sets the clients.
func (r *rewrite) prepare() error {
	if !slices.Contains([]string{cli.DryRunNone, cli.DryRunServer, cli.DryRunClient}, r.dryRun) {
		return fmt.Errorf("--dry-run is %q: it is none, server or client", r.dryRun)
	}
	if err := r.connect(); err != nil {
		return err
	}
	r.writer = restore.Writer{Client: r.dynamic, Manager: cli.FieldManager, Planner: planner}
	return nil
}

// leave notes that an object is not written.
func (r *rewrite) leave(object, why string) {
	r.leftOut = append(r.leftOut, object)
	r.note("%s is left as it is: %s", object, why)
}

// run brings objects to their contents. They get the reason as an annotation.
func (r *rewrite) run(ctx context.Context, objects []compared, reason string) error {
	r.writer.Planner.Reason = reason
	states, err := r.states(objects)
	if err != nil {
		return err
	}
	steps, err := r.writer.Planner.Plan(states)
	if err != nil {
		return err
	}
	if r.dryRun != cli.DryRunClient {
		if err := r.check(ctx, steps); err != nil {
			return err
		}
	}
	view := preview{schemas: r.schemas, out: r.Out}
	if r.output.OutputFlagSpecified() {
		view.out = r.ErrOut
	}
	if err := view.print(ctx, steps); err != nil {
		return err
	}
	toWrite := r.withoutRefused(steps)
	switch {
	case len(toWrite) == 0:
		return r.result(nil)
	case r.dryRun != cli.DryRunNone:
		return errors.Join(r.printObjects(toWrite), r.result(nil))
	}
	if err := r.confirm(ctx, len(toWrite)); err != nil {
		return err
	}
	return r.apply(ctx, toWrite)
}

// states returns the objects with those marked that are to be recreated.
func (r *rewrite) states(objects []compared) ([]restore.State, error) {
	recreate := map[objectRef]bool{}
	for _, arg := range r.recreate {
		of, err := objectArgument(r.config, []string{arg})
		if err != nil {
			return nil, fmt.Errorf("--recreate: %w", err)
		}
		if of.name == "" {
			return nil, fmt.Errorf("--recreate is %s: it is TYPE/NAME", arg)
		}
		recreate[objectRef{resource: of.resource, name: of.name}] = true
	}
	states := make([]restore.State, 0, len(objects))
	for _, o := range objects {
		key := objectRef{resource: o.Resource.GroupResource(), name: o.Name}
		if recreate[key] && restore.ContainsOthers(o.Kind.GroupKind()) {
			return nil, fmt.Errorf("--recreate is %s: %s, and would not come back; leave out --recreate to update it, or "+
				"save what is in it, delete it with kubectl delete, and restore it then", key, restore.Consequence(o.Kind.GroupKind()))
		}
		states = append(states, restore.State{
			Object: o.Object, Content: o.then, Live: o.live, Ignored: o.ignored, Recreate: recreate[key], Edited: o.edited,
		})
		delete(recreate, key)
	}
	for of := range recreate {
		return nil, fmt.Errorf("--recreate is %s: that is none of the objects that would be written", of)
	}
	return states, nil
}

// check has the API server check each step.
func (r *rewrite) check(ctx context.Context, steps []*restore.Step) error {
	said := time.Now()
	for i, step := range steps {
		if step.Verb == restore.Keep {
			continue
		}
		if now := time.Now(); now.Sub(said) >= cli.ProgressInterval {
			said = now
			r.note("Checked %d of %d objects", i, len(steps))
		}
		if err := r.writer.DryRun(ctx, step); err != nil {
			return fmt.Errorf("failed to check %s: %w", step.Object, err)
		}
	}
	return nil
}

// withoutRefused returns the steps that change something and that the API server accepts. It notes the others.
func (r *rewrite) withoutRefused(steps []*restore.Step) []*restore.Step {
	var out []*restore.Step
	r.forbidden = len(r.leftOut) == 0
	for _, step := range steps {
		switch {
		case step.Verb == restore.Keep:
		case len(step.Refusals) > 0:
			r.leftOut = append(r.leftOut, step.String())
			r.forbidden = r.forbidden && step.Forbidden
		default:
			out = append(out, step)
		}
	}
	return out
}

// confirm asks whether to write.
func (r *rewrite) confirm(ctx context.Context, count int) error {
	if r.yes {
		return nil
	}
	if !cli.IsTerminal(r.In) {
		return errors.New("nothing is written, because there is no terminal to ask on: add --yes to write, or --dry-run=server to look only")
	}
	question := fmt.Sprintf("Write %s? [y/N] ", summary.Count(count, "object"))
	if len(r.leftOut) > 0 {
		question = fmt.Sprintf("Write %s, and leave %d as they are? [y/N] ", summary.Count(count, "object"), len(r.leftOut))
	}
	return cli.Ask(ctx, r.In, r.ErrOut, question)
}

// done are the words for executed steps.
var done = map[restore.Verb]string{
	restore.Create: "created", restore.Update: "updated", restore.Recreate: "deleted and created", restore.Delete: "deleted",
}

// apply executes steps, and prints a line for each. It continues after a failure.
func (r *rewrite) apply(ctx context.Context, steps []*restore.Step) error {
	lines := r.Out
	if r.output.OutputFlagSpecified() {
		lines = r.ErrOut
	}
	var written []*restore.Step
	failures := map[*restore.Step]error{}
	for _, step := range steps {
		result, err := r.writer.Apply(ctx, step)
		if err != nil {
			failures[step] = err
			r.noteFailure(step, err)
		}
		if err == nil {
			step.Result = result
			written = append(written, step)
			if _, err := fmt.Fprintf(lines, "%s %s\n", step.Object, done[step.Verb]); err != nil {
				return err
			}
		}
		if ctx.Err() != nil && len(written) < len(steps) {
			return fmt.Errorf("ended: %w; %d of %d objects are written, and the same command writes the others",
				context.Cause(ctx), len(written), len(steps))
		}
	}
	return errors.Join(r.printObjects(written), r.result(failures))
}

// noteFailure says why a step failed. It keeps the manifest of an object that was deleted and not created.
func (r *rewrite) noteFailure(step *restore.Step, err error) {
	r.note("%s failed: %s", step.Object, summary.Line(failure(err)))
	var lost *restore.NotCreatedError
	if !errors.As(err, &lost) {
		return
	}
	text, err := yaml.Marshal(lost.Manifest)
	if err != nil {
		r.note("failed to write its manifest: %v", err)
		return
	}
	path, err := keep(text)
	if err != nil {
		r.note("failed to keep its manifest in a file: %v; the manifest is:", err)
		_, _ = io.WriteString(r.ErrOut, printable.Text(string(text))) // There is no other place.
		return
	}
	r.note("Its manifest is in %s: kubectl create -f %[1]s creates it", path)
}

// keep writes a text to a new file that only the user may read, and returns its path.
func keep(text []byte) (path string, err error) {
	file, err := os.CreateTemp("", "kubectl-slipstream-*.yaml")
	if err != nil {
		return "", err
	}
	_, err = file.Write(text)
	return file.Name(), errors.Join(err, file.Close())
}

// failure says why a step failed.
func failure(err error) string {
	if apierrors.IsConflict(err) {
		return "it has changed since the preview, and is left as it is"
	}
	return err.Error()
}

// printObjects prints objects as they are written, or would be, if an output format is given.
func (r *rewrite) printObjects(steps []*restore.Step) error {
	if !r.output.OutputFlagSpecified() {
		return nil
	}
	printer, err := r.output.ToPrinter()
	if err != nil {
		return err
	}
	for _, step := range steps {
		object := step.Write
		if step.Result != nil {
			object = step.Result
		}
		if object == nil {
			continue
		}
		object = object.DeepCopy()
		object.SetManagedFields(nil)
		if err := printer.PrintObj(object, r.Out); err != nil {
			return err
		}
	}
	return nil
}

// result returns an error if not everything was written: a conflict if something has changed in between, unless an object was deleted and not created.
func (r *rewrite) result(failures map[*restore.Step]error) error {
	var names, changed, gone []string
	forbidden := r.forbidden || len(r.leftOut) == 0
	for step, err := range failures {
		var lost *restore.NotCreatedError
		switch {
		case errors.As(err, &lost):
			gone = append(gone, step.String())
		case apierrors.IsConflict(err):
			changed = append(changed, step.String())
		default:
			names = append(names, step.String())
			forbidden = forbidden && apierrors.IsForbidden(err)
		}
	}
	slices.Sort(changed)
	switch {
	case len(gone) > 0:
		return lostError(gone, slices.Concat(changed, names, r.leftOut))
	case len(changed) > 0:
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: 409, Reason: metav1.StatusReasonConflict,
			Message: "changed since the preview, and left as they are: " + strings.Join(changed, ", ") + "; run the command again",
		}}
	}
	names = append(names, r.leftOut...)
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return nil
	case forbidden:
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: 403, Reason: metav1.StatusReasonForbidden,
			Message: "you may not write: " + strings.Join(names, ", "),
		}}
	}
	return cli.Failed("not everything is written: left as they are: %s", strings.Join(names, ", "))
}

// lostError returns the error for objects that were deleted and not created, and others that are left as they are.
func lostError(gone, left []string) error {
	slices.Sort(gone)
	slices.Sort(left)
	text := "deleted, and not created: " + strings.Join(gone, ", ")
	if len(left) > 0 {
		text += "; left as they are: " + strings.Join(left, ", ")
	}
	return cli.Failed("not everything is written: %s", text)
}

// contentOf returns a copy of an object that is compared with another.
func contentOf(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil {
		return nil
	}
	content, err := planner.Content(object)
	if err != nil {
		return object
	}
	return content
}
