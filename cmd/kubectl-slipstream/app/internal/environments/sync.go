// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
)

const syncExample = `  # Bring the environment alice to what its catalog offers, and wait for the result
  kubectl slipstream sync alice

  # See what that would change
  kubectl slipstream sync alice --dry-run

  # Refresh only the ConfigMaps, Secrets and Services of one workload
  kubectl slipstream sync alice --action cluster --workloads deployment/web

  # Sync all environments of a team
  kubectl slipstream sync -l team=a

  # Read the source of a catalog now
  kubectl slipstream sync catalog/shop

  # Compare a folder in Git with the cluster now
  kubectl slipstream sync gitdestination/production`

// parallelRequests is the number of objects for which something is requested at the same time.
const parallelRequests = 8

// syncer requests syncs of the objects of a kind, and waits for them.
type syncer interface {
	// sync requests a sync of an object and waits until it has ended.
	sync(ctx context.Context, name string, progress *cli.Progress) *answer
}

// syncCommand is the command sync.
type syncCommand struct {
	requester
	targets
	environment environmentSync
	destination destinationSync
}

// syncKinds are the kinds that sync takes, the default first.
var syncKinds = []cli.Kind{cli.Environment, cli.AppCatalog, cli.GitDestination, cli.SyncPipeline}

func newSync(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	s := &syncCommand{requester: newRequester(streams, config), targets: targets{kinds: syncKinds}}
	command := &cobra.Command{
		Use:   "sync (NAME | TYPE/NAME | [TYPE] -l SELECTOR)",
		Short: "Sync an Environment with its catalog, or read a catalog's source or compare a GitDestination, now",
		Long: "Sync an Environment with its catalog, and wait for the result. With a catalog, its source is read now; with a GitDestination, the\n" +
			"folder is compared with the cluster now.\n\n" +
			"Exit codes: 0 it is synced, 2 a wrong request or another error, 3 it failed, 4 fields conflict, a newer sync has replaced it, or the\n" +
			"Environment is stalled, 5 a permission is missing, 124 the time limit is reached, 130 the wait was interrupted. After the last two the\n" +
			"sync continues.",
		Example: syncExample,
		RunE:    func(command *cobra.Command, args []string) error { return s.run(command, args) },
	}
	s.addTo(command)
	s.environment.addFlags(command)
	s.destination.addFlags(command)
	s.addFlags(command)
	s.addWaitFlags(command)
	return command
}

func (s *syncCommand) run(command *cobra.Command, args []string) error {
	kind, name, err := s.parse(args)
	if err != nil {
		return err
	}
	to, err := s.syncerFor(command, kind)
	if err != nil {
		return err
	}
	if err := s.Begin(); err != nil {
		return err
	}
	ctx, cancel := s.Limit(command.Context())
	defer cancel()
	if name != "" {
		return s.report(to.sync(ctx, name, s.progress()))
	}
	return s.syncSelected(ctx, kind, to)
}

// syncerFor returns the syncer of a kind. Flags of another kind are an error.
func (s *syncCommand) syncerFor(command *cobra.Command, kind cli.Kind) (syncer, error) {
	for _, flags := range []struct {
		of    cli.Kind
		names []string
	}{{cli.Environment, environmentFlags}, {cli.GitDestination, destinationFlags}} {
		for _, flag := range flags.names {
			if command.Flags().Changed(flag) && kind.Resource != flags.of.Resource {
				return nil, fmt.Errorf("--%s is only for %s", flag, flags.of.Resource)
			}
		}
	}
	switch kind.Resource {
	case cli.AppCatalog.Resource:
		return &catalogSync{requester: &s.requester}, nil
	case cli.GitDestination.Resource:
		s.destination.requester = &s.requester
		return &s.destination, nil
	case cli.SyncPipeline.Resource:
		return nil, errors.New("pipelines have a command of their own: kubectl slipstream sync-pipeline NAME")
	}
	s.environment.requester = &s.requester
	return &s.environment, s.environment.parse()
}

// syncSelected syncs the objects that the selector matches, some at the same time.
func (s *syncCommand) syncSelected(ctx context.Context, kind cli.Kind, to syncer) error {
	names, err := s.find(ctx, &s.requester, kind)
	if err != nil {
		return err
	}
	return s.reportAll(s.together(kind, names, func(name string, progress *cli.Progress) *answer { return to.sync(ctx, name, progress) }))
}

// together requests something for several objects, for some at the same time, and returns the answers in the order of the names.
func (r *requester) together(kind cli.Kind, names []string, request func(name string, progress *cli.Progress) *answer) []*answer {
	if r.Wait && !r.IsDryRun() && len(names) > 0 {
		_, _ = fmt.Fprintln(r.ErrOut, cli.WaitNotice("sync", r.Timeout)) // Nothing depends on it.
	}
	out := &lockedWriter{to: r.ErrOut}
	answers := make([]*answer, len(names))
	var group errgroup.Group
	group.SetLimit(parallelRequests)
	for i, name := range names {
		group.Go(func() error {
			answers[i] = request(name, &cli.Progress{Out: out, Prefix: kind.Named(name) + ": "})
			return nil
		})
	}
	_ = group.Wait() // The answers have the errors.
	return answers
}

// lockedWriter lets goroutines write lines one after the other.
type lockedWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *lockedWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(line)
}
