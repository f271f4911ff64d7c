// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// scopes are the values of --scope.
var scopes = map[string]v1alpha1.PipelineScope{
	"all": v1alpha1.PipelineScopeAll, "crds": v1alpha1.PipelineScopeDefinitions, "instances": v1alpha1.PipelineScopeInstances,
}

const syncPipelineExample = `  # Send at once what some receiver does not have yet
  kubectl slipstream sync-pipeline assistant

  # Send all CustomResourceDefinitions again, to a receiver that has lost them
  kubectl slipstream sync-pipeline assistant --scope crds --full`

// syncPipeline is the command sync-pipeline.
type syncPipeline struct {
	cli.Request
	scope string
	full  bool
}

func newSyncPipeline(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	s := &syncPipeline{Request: cli.NewRequest(streams, config)}
	command := &cobra.Command{
		Use:     "sync-pipeline NAME",
		Short:   "Compare all objects with what a SyncPipeline has sent, and send the difference",
		Example: syncPipelineExample,
		Args:    cobra.ExactArgs(1),
		RunE:    func(command *cobra.Command, args []string) error { return s.run(command.Context(), args[0]) },
	}
	flags := command.Flags()
	flags.StringVar(&s.scope, "scope", "all", "What is sent: all, crds or instances.")
	flags.BoolVar(&s.full, "full", false, "Send everything that matches, not only what a sink does not have yet.")
	flags.BoolVar(&s.Wait, "wait", true, "Print the progress until everything is sent.")
	flags.StringVar(&s.DryRun, "dry-run", cli.DryRunNone, "none or server: have the server check the request, and do nothing.")
	flags.Lookup("dry-run").NoOptDefVal = cli.DryRunServer
	cli.DurationVar(flags, &s.Timeout, "timeout", 0, "How long to wait, such as 10m. The run continues after that. 0 means no limit.")
	s.Output.AddFlags(command)
	return command
}

func (s *syncPipeline) run(ctx context.Context, argument string) error {
	scope, known := scopes[s.scope]
	if !known {
		return fmt.Errorf("--scope is %q: it is all, crds or instances", s.scope)
	}
	if err := s.Begin(); err != nil {
		return err
	}
	ctx, cancel := s.Limit(ctx)
	defer cancel()
	of, name, err := cli.ParseName(argument, cli.SyncPipeline)
	if err != nil {
		return err
	}
	request := &v1alpha1.PipelineSync{Spec: v1alpha1.PipelineSyncSpec{Scope: scope, Full: s.full}}
	answer, err := s.API.SyncPipelines().Sync(ctx, name, request, s.Options())
	if err != nil {
		return s.NoResponse(ctx, of, name, err)
	}
	if err := s.follow(ctx, name, answer); err != nil {
		return err
	}
	return s.report(answer)
}

// follow waits for the run and updates the answer with its result.
func (s *syncPipeline) follow(ctx context.Context, name string, answer *v1alpha1.PipelineSync) error {
	if !s.Wait || s.IsDryRun() || isFinished(answer.Status.Run) {
		return nil
	}
	_, _ = fmt.Fprintln(s.ErrOut, cli.WaitNotice("run", s.Timeout)) // Nothing depends on it.
	follower := &follower{api: s.API, name: name, id: answer.Status.ID, progress: cli.Progress{Out: s.ErrOut}}
	run, err := follower.untilFinished(ctx)
	if cli.IsOver(err) {
		return fmt.Errorf("stopped waiting for the run: %w; the run continues, and kubectl get syncpipeline %s shows its progress", err, cli.Quoted(name))
	}
	if err != nil {
		return fmt.Errorf("failed to follow the run: %w", err)
	}
	if answer.Status.Run = run; run != nil {
		answer.Status.Message = "" // It says where to see what has been seen now.
	}
	return nil
}

// report prints what was sent to which sink, and returns an error if not all was.
func (s *syncPipeline) report(answer *v1alpha1.PipelineSync) error {
	if s.Output.OutputFlagSpecified() {
		printer, err := s.Output.ToPrinter()
		if err != nil {
			return err
		}
		if err := printer.PrintObj(answer, s.Out); err != nil {
			return err
		}
	} else if err := printRun(s.Out, answer); err != nil {
		return err
	}
	return failureOf(answer.Status.Run)
}

// failureOf returns an error if a run has not sent everything to all sinks.
func failureOf(run *v1alpha1.PipelineRun) error {
	if !isFinished(run) {
		return nil
	}
	var short []string
	for _, sink := range run.Sinks {
		if sink.Rejected > 0 || sink.Done < sink.Total {
			short = append(short, sink.Name)
		}
	}
	if len(short) == 0 {
		return nil
	}
	slices.Sort(short)
	return cli.Failed("not everything got to %s", strings.Join(short, ", "))
}

func isFinished(run *v1alpha1.PipelineRun) bool {
	return run != nil && run.Phase == v1alpha1.PipelineRunFinished
}
