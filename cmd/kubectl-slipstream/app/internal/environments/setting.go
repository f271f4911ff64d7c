// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// setting is a command that sets or clears one field of a spec.
type setting struct {
	requester
	targets
	field string
	// value returns the new value of the field, nil to clear it.
	value func() (any, error)
	// ofCatalogs and ofOthers are the commands that do to catalogs and to other kinds what this one does, empty if there are none.
	ofCatalogs, ofOthers string
	// done and already are printed after the object, with the value if it is not cleared.
	done, already string
}

// newSetting returns the command.
func newSetting(command *cobra.Command, s *setting) *cobra.Command {
	command.RunE = func(command *cobra.Command, args []string) error { return s.run(command.Context(), args) }
	s.addTo(command)
	s.addFlags(command)
	return command
}

func (s *setting) run(ctx context.Context, args []string) error {
	of, name, err := s.parse(args)
	if err != nil {
		return err
	}
	value, err := s.value()
	if err != nil {
		return err
	}
	if err := s.Begin(); err != nil {
		return err
	}
	ctx, cancel := s.Limit(ctx)
	defer cancel()
	return s.each(ctx, &s.requester, of, name, func(name string) error { return s.set(ctx, of, name, value) })
}

// set sets the field of an object.
func (s *setting) set(ctx context.Context, of cli.Kind, name string, value any) error {
	objects, err := s.objects(of)
	if err != nil {
		return err
	}
	object, err := objects.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return s.ofOtherKind(ctx, of, name, err)
	}
	before, _, err := unstructured.NestedFieldNoCopy(object.Object, "spec", s.field)
	if err != nil {
		return err
	}
	outcome := s.already
	if !reflect.DeepEqual(before, value) {
		outcome = s.done
		if object, err = s.patch(ctx, objects, name, value); err != nil {
			return s.NoResponse(ctx, of, name, err)
		}
	}
	return s.print(object, of.Named(name), outcome, value)
}

// patch sets the field.
func (s *setting) patch(ctx context.Context, objects dynamic.ResourceInterface, name string, value any) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{s.field: value}})
	if err != nil {
		return nil, err
	}
	options := s.Options()
	return objects.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{
		FieldManager: cli.FieldManager, DryRun: options.DryRun, FieldValidation: options.FieldValidation,
	})
}

// print prints the object, or what was done.
func (s *setting) print(object *unstructured.Unstructured, named, outcome string, value any) error {
	if s.Output.OutputFlagSpecified() {
		printer, err := s.Output.ToPrinter()
		if err != nil {
			return err
		}
		return printer.PrintObj(object, s.Out)
	}
	if text, ok := value.(string); ok {
		outcome += " " + text
	}
	if s.IsDryRun() {
		outcome += " (dry run)"
	}
	_, err := fmt.Fprintln(s.Out, printable.Line(named+" "+outcome))
	return err
}

// constant returns a value that no flag sets.
func constant(value any) func() (any, error) { return func() (any, error) { return value, nil } }

func newUnpin(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	return newSetting(&cobra.Command{
		Use:     "unpin (ENVIRONMENT | catalog/NAME | [TYPE] -l SELECTOR)",
		Short:   "Let an Environment or a catalog go forward again after a rollback",
		Long:    "Remove spec.pinnedRevision. With autoSync, an Environment goes forward by itself, and otherwise with the next sync.",
		Example: "  kubectl slipstream unpin alice\n\n  kubectl slipstream unpin catalog/shop",
	}, &setting{
		requester: newRequester(streams, config), targets: targets{kinds: []cli.Kind{cli.Environment, cli.AppCatalog}}, field: "pinnedRevision",
		value: constant(nil), done: "unpinned", already: "was not pinned",
	})
}

func newPause(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	s := &setting{
		requester: newRequester(streams, config), targets: targets{kinds: []cli.Kind{cli.AppCatalog}}, field: "pauseUntil",
		done: "paused until", already: "is paused until", ofCatalogs: "pause", ofOthers: "suspend",
	}
	command := &cobra.Command{
		Use:     "pause (CATALOG | -l SELECTOR)",
		Short:   "Stop a catalog from taking changes of its source for some time",
		Long:    "Set spec.pauseUntil of a catalog. Changes of the source wait until then, or until kubectl slipstream resume.",
		Example: "  kubectl slipstream pause shop --for 2h\n\n  kubectl slipstream pause shop --until 2026-12-24T18:00:00Z",
	}
	var until string
	var duration time.Duration
	cli.DurationVar(command.Flags(), &duration, "for", 24*time.Hour, "How long, such as 2h or 7d.")
	command.Flags().StringVar(&until, "until", "", "Until when, as a time such as 2026-12-24T18:00:00Z.")
	command.MarkFlagsMutuallyExclusive("for", "until")
	s.value = func() (any, error) { return pauseEnd(duration, until, time.Now()) }
	return newSetting(command, s)
}

// pauseEnd returns the value of spec.pauseUntil.
func pauseEnd(duration time.Duration, until string, now time.Time) (string, error) {
	end := now.Add(duration)
	if until != "" {
		var err error
		if end, err = time.Parse(time.RFC3339, until); err != nil {
			return "", fmt.Errorf("--until is %q: it is a time such as 2026-12-24T18:00:00Z", until)
		}
	}
	if !end.After(now) {
		return "", errors.New("the pause would be over already: --for and --until lead into the future")
	}
	return end.UTC().Format(time.RFC3339), nil
}

func newResume(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	return newSetting(&cobra.Command{
		Use:     "resume (CATALOG | -l SELECTOR)",
		Short:   "End the pause of a catalog",
		Example: "  kubectl slipstream resume shop",
	}, &setting{
		requester: newRequester(streams, config), targets: targets{kinds: []cli.Kind{cli.AppCatalog}}, field: "pauseUntil",
		value: constant(nil), done: "resumed", already: "was not paused", ofCatalogs: "resume", ofOthers: "unsuspend",
	})
}

// suspendable are the kinds with spec.suspend, the default first.
var suspendable = []cli.Kind{cli.GitDestination, cli.SyncPipeline, cli.NotificationSink}

func newSuspend(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	return newSetting(&cobra.Command{
		Use:   "suspend (GITDESTINATION | syncpipeline/NAME | notificationsink/NAME | [TYPE] -l SELECTOR)",
		Short: "Stop writing a GitDestination, or what a SyncPipeline or a NotificationSink sends",
		Long: "Set spec.suspend. Changes of a GitDestination wait; a SyncPipeline finds and sends the differences after unsuspend. What happens\n" +
			"meanwhile is not notified by a NotificationSink later, except what still needs a decision or fails then.",
		Example: "  kubectl slipstream suspend production\n\n  kubectl slipstream suspend syncpipeline/index",
	}, &setting{
		requester: newRequester(streams, config), targets: targets{kinds: suspendable}, field: "suspend",
		value: constant(true), done: "suspended", already: "is suspended already", ofCatalogs: "pause", ofOthers: "suspend",
	})
}

func newUnsuspend(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	return newSetting(&cobra.Command{
		Use:     "unsuspend (GITDESTINATION | syncpipeline/NAME | notificationsink/NAME | [TYPE] -l SELECTOR)",
		Short:   "End the suspension of a GitDestination, SyncPipeline or NotificationSink",
		Example: "  kubectl slipstream unsuspend production",
	}, &setting{
		requester: newRequester(streams, config), targets: targets{kinds: suspendable}, field: "suspend",
		value: constant(nil), done: "no longer suspended", already: "was not suspended", ofCatalogs: "resume", ofOthers: "unsuspend",
	})
}
