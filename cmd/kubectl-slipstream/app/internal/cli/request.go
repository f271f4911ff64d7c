// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/scheme"
	client "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
)

// FieldManager is the field manager of what the plugin writes.
const FieldManager = "kubectl-slipstream"

// Request has what the commands share that request something: flags, clients and output.
type Request struct {
	genericiooptions.IOStreams
	Config *genericclioptions.ConfigFlags
	Output *genericclioptions.PrintFlags
	DryRun string
	Wait   bool
	// Timeout limits the request and the wait. 0 is no limit.
	Timeout time.Duration

	// Namespace and API are set by Begin.
	Namespace string
	API       client.ConfigbutlerV1alpha1Interface
}

// NewRequest returns a Request whose flags are not set yet.
func NewRequest(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) Request {
	return Request{IOStreams: streams, Config: config, Output: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme)}
}

// Begin checks the flags and sets the namespace and the clients.
func (r *Request) Begin() (err error) {
	if r.DryRun != DryRunNone && r.DryRun != DryRunServer {
		return fmt.Errorf("--dry-run is %q: it is none or server", r.DryRun)
	}
	if r.Namespace, _, err = r.Config.ToRawKubeConfigLoader().Namespace(); err != nil {
		return err
	}
	r.API, err = Connect(r.Config)
	return err
}

// Limit starts the time limit: the context that it returns ends after it.
func (r *Request) Limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.Timeout > 0 {
		return context.WithTimeout(ctx, r.Timeout)
	}
	return context.WithCancel(ctx)
}

// IsDryRun reports whether the server only checks requests.
func (r *Request) IsDryRun() bool { return r.DryRun == DryRunServer }

// Options returns the options of a request.
func (r *Request) Options() metav1.CreateOptions {
	options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	if r.IsDryRun() {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return options
}

// NoResponse returns the error of a request. If the wait for the response was ended, it is not known whether it was accepted.
func (r *Request) NoResponse(ctx context.Context, of Kind, name string, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: the server has not responded yet; kubectl get %s %s%s shows whether it has accepted the request",
		context.Cause(ctx), of.Resource, Quoted(name), r.InNamespace(of))
}

// InNamespace returns the flag that commands for objects of a kind need.
func (r *Request) InNamespace(of Kind) string {
	if of.ClusterScoped {
		return ""
	}
	return " -n " + Quoted(r.Namespace)
}

// IsOver reports whether the user or the time limit has ended a wait.
func IsOver(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
