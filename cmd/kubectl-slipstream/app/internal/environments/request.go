// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/scheme"
	client "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
)

// requester has what the commands share that request something: flags, clients and output.
type requester struct {
	genericiooptions.IOStreams
	config  *genericclioptions.ConfigFlags
	output  *genericclioptions.PrintFlags
	dryRun  string
	wait    bool
	timeout time.Duration

	namespace string
	api       client.ConfigbutlerV1alpha1Interface
}

func newRequester(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) requester {
	return requester{IOStreams: streams, config: config, output: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme)}
}

// addFlags adds the flags that all requests have.
func (r *requester) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&r.dryRun, "dry-run", cli.DryRunNone, "none or server: have the server check the request, and do nothing.")
	flags.Lookup("dry-run").NoOptDefVal = cli.DryRunServer
	r.output.AddFlags(command)
}

// addWaitFlags adds the flags of requests that take time.
func (r *requester) addWaitFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVar(&r.wait, "wait", true, "Print the progress until the sync has ended.")
	flags.DurationVar(&r.timeout, "timeout", 0, "How long to wait, such as 10m. The sync continues after that. 0 means no limit.")
}

// begin checks the flags and sets the clients. The context that it returns ends after the time limit.
func (r *requester) begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if r.dryRun != cli.DryRunNone && r.dryRun != cli.DryRunServer {
		return nil, nil, fmt.Errorf("--dry-run is %q: it is none or server", r.dryRun)
	}
	var err error
	if r.namespace, _, err = r.config.ToRawKubeConfigLoader().Namespace(); err != nil {
		return nil, nil, err
	}
	if r.api, err = cli.Connect(r.config, r.IOStreams); err != nil {
		return nil, nil, err
	}
	if r.timeout > 0 {
		ctx, cancel := context.WithTimeout(ctx, r.timeout)
		return ctx, cancel, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	return ctx, cancel, nil
}

// isDryRun reports whether the server only checks requests.
func (r *requester) isDryRun() bool { return r.dryRun == cli.DryRunServer }

// options returns the options of a request.
func (r *requester) options() metav1.CreateOptions {
	options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	if r.isDryRun() {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return options
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

// noResponse returns the error of a request. If the wait for the response was ended, it is not known whether it was accepted.
func (r *requester) noResponse(ctx context.Context, of cli.Kind, name string, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: the server has not responded yet; kubectl get %s %s%s shows whether it has accepted the request",
		context.Cause(ctx), of.Resource, name, r.inNamespace(of))
}

// inNamespace returns the flag that commands for objects of a kind need.
func (r *requester) inNamespace(of cli.Kind) string {
	if of.ClusterScoped {
		return ""
	}
	return " -n " + r.namespace
}

// isOver reports whether the user or the time limit has ended a wait.
func isOver(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
