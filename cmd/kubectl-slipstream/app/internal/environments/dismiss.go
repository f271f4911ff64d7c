// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"

	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// immediate is a command whose request the server carries out before it responds.
type immediate struct {
	requester
	targets
	// request sends the request for an object.
	request func(ctx context.Context, r *requester, of cli.Kind, name string) (*answer, error)
}

// newImmediate returns the command.
func newImmediate(command *cobra.Command, i *immediate) *cobra.Command {
	command.RunE = func(command *cobra.Command, args []string) error { return i.run(command.Context(), args) }
	i.addTo(command)
	i.addFlags(command)
	return command
}

func (i *immediate) run(ctx context.Context, args []string) error {
	of, name, err := i.parse(args)
	if err != nil {
		return err
	}
	if err := i.Begin(); err != nil {
		return err
	}
	ctx, cancel := i.Limit(ctx)
	defer cancel()
	return i.each(ctx, &i.requester, of, name, func(name string) error {
		a, err := i.request(ctx, &i.requester, of, name)
		if err != nil {
			return i.NoResponse(ctx, of, name, err)
		}
		return i.report(a)
	})
}

func newDismiss(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	return newImmediate(&cobra.Command{
		Use:   "dismiss (ENVIRONMENT | syncstatus/NAME | [TYPE] -l SELECTOR)",
		Short: "Dismiss a SyncStatus, or what an Environment is offered until something newer is offered",
		Long: "Dismiss the changes that an Environment is offered, until there are newer ones. Nothing else changes, and undismiss offers them\n" +
			"again. A SyncStatus that is dismissed is not tried again.",
		Example: "  kubectl slipstream dismiss alice\n\n  kubectl slipstream dismiss syncstatus/shop-x7k2p",
	}, &immediate{
		requester: newRequester(streams, config), targets: targets{kinds: []cli.Kind{cli.Environment, cli.SyncStatus}},
		request: func(ctx context.Context, r *requester, of cli.Kind, name string) (*answer, error) {
			dismiss := r.API.Environments(r.Namespace).Dismiss
			if of.Resource == cli.SyncStatus.Resource {
				dismiss = r.API.SyncStatuses(r.Namespace).Dismiss
			}
			response, err := dismiss(ctx, name, &v1alpha1.Dismissal{}, r.Options())
			if err != nil {
				return nil, err
			}
			return respond(of, name, response, &response.Status), nil
		},
	})
}

func newUndismiss(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	return newImmediate(&cobra.Command{
		Use:     "undismiss (ENVIRONMENT | -l SELECTOR)",
		Short:   "Offer an Environment its dismissed changes again",
		Example: "  kubectl slipstream undismiss alice",
	}, &immediate{
		requester: newRequester(streams, config), targets: targets{kinds: []cli.Kind{cli.Environment}},
		request: func(ctx context.Context, r *requester, of cli.Kind, name string) (*answer, error) {
			response, err := r.API.Environments(r.Namespace).Undismiss(ctx, name, &v1alpha1.Undismissal{}, r.Options())
			if err != nil {
				return nil, err
			}
			return respond(of, name, response, &response.Status), nil
		},
	})
}

func newRediscover(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	return newImmediate(&cobra.Command{
		Use:     "rediscover (ENVIRONMENT | -l SELECTOR)",
		Short:   "Search again for the objects that an Environment's workloads refer to",
		Example: "  kubectl slipstream rediscover alice",
	}, &immediate{
		requester: newRequester(streams, config), targets: targets{kinds: []cli.Kind{cli.Environment}},
		request: func(ctx context.Context, r *requester, of cli.Kind, name string) (*answer, error) {
			response, err := r.API.Environments(r.Namespace).Rediscover(ctx, name, &v1alpha1.Rediscovery{}, r.Options())
			if err != nil {
				return nil, err
			}
			return respond(of, name, response, &response.Status), nil
		},
	})
}
