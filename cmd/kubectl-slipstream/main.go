// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-slipstream is the plugin that kubectl runs as `kubectl slipstream`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubeconfigs may ask for any of them

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	command := app.NewCommand(streams)
	command.SetArgs(app.Arguments(os.Args))
	err := command.ExecuteContext(ctx)
	stop()
	if app.IsFailure(err) {
		fmt.Fprintf(os.Stderr, "Error: %s\n", printable.Text(err.Error()))
	}
	os.Exit(app.ExitCode(err))
}
