// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notifications

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

const testLong = `Send a test message to the receiver of a NotificationSink, and print it with the receiver's response.

The content of the message is made up. The server sends it with the Secret of the sink, once and at once, and it changes no status. You need the
permission to create notificationsinks/test, and those that the sink itself requires.`

const testExample = `  # Send a message about a failed sync
  kubectl slipstream notify test slack -n shop --event Failed

  # See a message with one notification of each kind, and send nothing
  kubectl slipstream notify test mail -n shop --digest --dry-run=server

  # Try a template before it is stored in the sink
  kubectl slipstream notify test slack -n shop --title '{{.Severity}}: {{.Namespace}}/{{.Name}}' --text '{{.Headline}}' --dry-run=server

  # Write the HTML of a mail to a file
  kubectl slipstream notify test mail -n shop --dry-run=server -o body > mail.html`

// The values of --output beside those of kubectl.
const (
	outputText = "text"
	outputBody = "body"
)

// test is the command notify test.
type test struct {
	cli.Request
	event    string
	digest   bool
	template template
}

func newTest(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	t := &test{Request: cli.NewRequest(streams, config)}
	command := &cobra.Command{
		Use:     "test SINK",
		Short:   "Send a test message, and print it with the receiver's response",
		Long:    testLong,
		Example: testExample,
		Args:    cobra.ExactArgs(1),
		RunE:    func(command *cobra.Command, args []string) error { return t.run(command.Context(), args[0]) },
	}
	flags := command.Flags()
	flags.StringVar(&t.event, "event", string(v1alpha1.NotifyPrompted), "The kind of the notification: "+strings.Join(eventNames(), ", ")+".")
	flags.BoolVar(&t.digest, "digest", false, "Send one notification of each kind in one message.")
	completions := cobra.FixedCompletions(eventNames(), cobra.ShellCompDirectiveNoFileComp)
	utilruntime.Must(command.RegisterFlagCompletionFunc("event", completions)) // It fails only for flags that do not exist.
	command.MarkFlagsMutuallyExclusive("event", "digest")
	t.template.addFlags(command)
	flags.StringVar(&t.DryRun, "dry-run", cli.DryRunNone, "none or server: print the message, and send nothing.")
	flags.Lookup("dry-run").NoOptDefVal = cli.DryRunServer
	t.Output.AddFlags(command)
	flags.Lookup("output").Usage = "text: the message and the response (the default); body: only what is sent. " + flags.Lookup("output").Usage
	return command
}

func eventNames() []string {
	var names []string
	for _, event := range v1alpha1.NotificationEvents() {
		names = append(names, string(event))
	}
	return names
}

// parseEvent returns an event by its name, in upper or lower case.
func parseEvent(name string) (v1alpha1.NotificationEvent, error) {
	for _, event := range v1alpha1.NotificationEvents() {
		if strings.EqualFold(name, string(event)) {
			return event, nil
		}
	}
	return "", fmt.Errorf("--event is %q: it is one of %s", name, strings.Join(eventNames(), ", "))
}

func (t *test) run(ctx context.Context, argument string) error {
	request, err := t.request()
	if err != nil {
		return err
	}
	of, name, err := cli.ParseName(argument, cli.NotificationSink)
	if err != nil {
		return err
	}
	if err := t.Begin(); err != nil {
		return err
	}
	answer, err := t.API.NotificationSinks(t.Namespace).Test(ctx, name, request, t.Options())
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%w: the server has not responded yet, and the message may have been sent", context.Cause(ctx))
		}
		return err
	}
	if err := t.print(answer); err != nil {
		return err
	}
	if t.IsDryRun() || answer.Status.Delivered {
		return nil
	}
	return cli.Failed("%s did not deliver the message: %s", of.Named(name), printable.Line(answer.Status.Message))
}

// request returns what the flags ask for.
func (t *test) request() (*v1alpha1.NotificationTest, error) {
	event, err := parseEvent(t.event)
	if err != nil {
		return nil, err
	}
	request := &v1alpha1.NotificationTest{Spec: v1alpha1.NotificationTestSpec{Event: event, Digest: t.digest}}
	request.Spec.Template, err = t.template.read(t.In)
	return request, err
}

// print prints the message, and the response unless it is an error.
func (t *test) print(answer *v1alpha1.NotificationTest) error {
	status := &answer.Status
	switch *t.Output.OutputFormat {
	case "", outputText:
		title := cli.Bold.Paint(printable.Line(status.Title), cli.HasColours(t.Out))
		text := strings.ReplaceAll(strings.TrimSpace(printable.Text(status.Text)), "\n", "\n  ")
		if _, err := fmt.Fprintf(t.Out, "%s\n\n  %s\n", title, strings.ReplaceAll(text, "\n  \n", "\n\n")); err != nil {
			return err
		}
		return t.printResponse(status)
	case outputBody:
		_, err := fmt.Fprintln(t.Out, printable.Text(status.Body))
		return err
	}
	printer, err := t.Output.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(answer, t.Out)
}

// printResponse prints the receiver's response, or that there is none. That of a message that was not delivered is in the error.
func (t *test) printResponse(status *v1alpha1.NotificationTestStatus) error {
	response := printable.Line(status.Message)
	switch {
	case t.IsDryRun():
	case !status.Delivered:
		return nil
	case response == "":
		response = "Delivered"
	default:
		response = "Delivered: " + response
	}
	_, err := fmt.Fprintf(t.Out, "\n%s\n", response)
	return err
}
