// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"github.com/spf13/cobra"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// requester requests something of the kinds that have environments.
type requester struct{ cli.Request }

func newRequester(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) requester {
	return requester{cli.NewRequest(streams, config)}
}

// addFlags adds the flags that all requests have.
func (r *requester) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&r.DryRun, "dry-run", cli.DryRunNone, "none or server: have the server check the request, and do nothing.")
	flags.Lookup("dry-run").NoOptDefVal = cli.DryRunServer
	r.Output.AddFlags(command)
}

// addWaitFlags adds the flags of requests that take time.
func (r *requester) addWaitFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVar(&r.Wait, "wait", true, "Print the progress until the sync has ended.")
	cli.DurationVar(flags, &r.Timeout, "timeout", 0, "How long to wait, such as 10m. The sync continues after that. 0 means no limit.")
}

// answer is the server's response to a request for an object, and what has come of it.
type answer struct {
	of   cli.Kind
	name string
	// object is the response. outcome is part of it, nil for a GitDestination.
	object  runtime.Object
	outcome *v1alpha1.RequestOutcome
	// state says what was done, or how far it is. records are the SyncStatuses of the request.
	state   string
	records []*v1alpha1.SyncStatus
	plan    *v1alpha1.SyncPlan
	// err is why there is no response, why it was not waited for, or that the sync has failed.
	err error
}

// respond returns the answer for a response.
func respond(of cli.Kind, name string, object runtime.Object, outcome *v1alpha1.RequestOutcome) *answer {
	return &answer{of: of, name: name, object: object, outcome: outcome, state: outcome.Message}
}
