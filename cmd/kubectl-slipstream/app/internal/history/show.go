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

	"github.com/spf13/cobra"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/scheme"
	client "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

const showExample = `  # One change of the namespace shop
  kubectl slipstream show fe5de7ac1a38-fe2f91dc2d98 -n shop

  # What a commit has changed in the namespace shop
  kubectl slipstream show 8548a58 -n shop`

// show is the command show.
type show struct {
	session
	print *genericclioptions.PrintFlags
}

func newShow(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	s := &show{
		session: session{IOStreams: streams, config: config}, print: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme),
	}
	command := &cobra.Command{
		Use:   "show CHANGE",
		Short: "Show one change as a diff, with who made it, how that is known, why, and the commits",
		Long: "Show one change of an object. CHANGE is the name of a Change of the namespace, NAMESPACE/NAME, or a commit with at least 7\n" +
			"digits. You need permission to get the object. Values of Secrets are not shown.",
		Example: showExample,
		Args:    cobra.ExactArgs(1),
		RunE:    func(command *cobra.Command, args []string) error { return s.run(command.Context(), args[0]) },
	}
	s.print.AddFlags(command)
	return command
}

func (s *show) run(ctx context.Context, argument string) error {
	if err := s.connect(); err != nil {
		return err
	}
	change, err := s.change(ctx, argument)
	if err != nil {
		return err
	}
	difference, err := s.api.Changes(change.Namespace).Diff(ctx, change.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if s.print.OutputFlagSpecified() {
		printer, err := s.print.ToPrinter()
		if err != nil {
			return err
		}
		return printer.PrintObj(difference, s.Out)
	}
	if err := printHeader(s.Out, change, time.Now()); err != nil {
		return err
	}
	return printDifference(s.Out, change, difference)
}

// printPatch prints a change of a log with its diff. If its contents cannot be read, it prints why, and the log continues.
func printPatch(ctx context.Context, api client.ChangesGetter, out io.Writer, change *v1alpha1.Change) error {
	if err := printHeader(out, change, time.Now()); err != nil {
		return err
	}
	difference, err := api.Changes(change.Namespace).Diff(ctx, change.Name, metav1.GetOptions{})
	switch status := apierrors.APIStatus(nil); {
	case err == nil:
		err = printDifference(out, change, difference)
	case errors.As(err, &status):
		_, err = fmt.Fprintf(out, "\nThe diff cannot be shown: %s\n", printable.Line(status.Status().Message))
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out)
	return err
}

// printHeader prints everything about a change but what differs.
func printHeader(out io.Writer, change *v1alpha1.Change, now time.Time) error {
	table := printers.GetNewTabWriter(out)
	line := func(name, value string) {
		if name != "" {
			name += ":"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\n", name, printable.Line(value)) // Flush has the error.
	}
	printer := changePrinter{now: func() time.Time { return now }}
	line("Change", change.Namespace+"/"+change.Name)
	line("Who", whoOf(change)+known(change))
	line("When", change.Spec.Time.UTC().Format(time.RFC3339)+", "+printer.when(change)+" ago")
	object := whatOf(change)
	if change.Spec.Object.Namespace != "" {
		object += " in namespace " + change.Spec.Object.Namespace
	}
	line("Object", object)
	line("Did", string(change.Spec.Operation))
	if change.Spec.Reason != "" {
		line("Reason", change.Spec.Reason)
	}
	if manager := change.Spec.ManagedBy; manager != nil {
		line("Managed by", managerOf(manager)+bypassed(change))
	}
	for _, commit := range change.Spec.Commits {
		line("Commit", commit.SHA+" of "+commit.DestinationRef.Namespace+"/"+commit.DestinationRef.Name)
		line("", commit.Path)
		if commit.URL != "" {
			line("", commit.URL)
		}
	}
	return table.Flush()
}

// known says how the author of a change is known.
func known(change *v1alpha1.Change) string {
	switch {
	case change.Spec.Author != nil && change.Spec.Author.Signal == "Audit":
		return ", by an audit event"
	case change.Spec.Author != nil && change.Spec.Author.Signal == "Admission":
		return ", by an admission review"
	case change.Spec.Author == nil && change.Spec.FieldManager != "":
		return ", the field manager, a name that its client chose"
	}
	return ""
}

func managerOf(m *v1alpha1.ChangeManager) string {
	name := m.Name
	if m.Namespace != "" {
		name = m.Namespace + "/" + m.Name
	}
	return strings.Join(strings.Fields(string(m.Tool)+" "+m.Kind+" "+name), " ")
}

func bypassed(change *v1alpha1.Change) string {
	if change.Spec.Bypass {
		return ", which did not make this change"
	}
	return ""
}

// printDifference prints what differs: the diff of the contents, and which hidden values differ.
func printDifference(out io.Writer, change *v1alpha1.Change, difference *v1alpha1.ChangeDiff) error {
	before, after, err := decodedBoth(difference)
	if err != nil {
		return err
	}
	path := difference.Object.Resource + "/" + difference.Object.Name
	if len(change.Spec.Commits) > 0 {
		path = change.Spec.Commits[0].Path
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	differs, err := writeDifference(out, "a/"+path, "b/"+path, before, after)
	if err != nil {
		return err
	}
	for _, field := range difference.Fields {
		if !field.Hidden {
			continue
		}
		differs = true
		if _, err := fmt.Fprintln(out, printable.Line(field.Field+" "+strings.ToLower(string(field.ChangeType))+" (value hidden)")); err != nil {
			return err
		}
	}
	if !differs {
		_, err = fmt.Fprintln(out, "No field differs.")
	}
	return err
}
