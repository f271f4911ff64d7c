// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-slipstream is the plugin that kubectl runs as `kubectl slipstream`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubeconfigs may ask for any of them

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// grace is how long a command may go on after it was interrupted, such as to say where a request continues.
const grace = 2 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	utilruntime.ErrorHandlers = exceptExpected(utilruntime.ErrorHandlers)
	command := app.NewCommand(streams)
	command.SetArgs(app.Arguments(os.Args))
	context.AfterFunc(ctx, stop) // A second signal ends the process at once.
	err := untilEnded(ctx, grace, command.ExecuteContext)
	stop()
	if app.IsFailure(err) {
		fmt.Fprintf(os.Stderr, "Error: %s\n", printable.Text(err.Error()))
	}
	os.Exit(app.ExitCode(err))
}

// untilEnded returns the error of run, or one that wraps context.Canceled if run has not ended some time after ctx: discovery of types, for
// one, does not end with ctx if the server does not answer.
func untilEnded(ctx context.Context, grace time.Duration, run func(context.Context) error) error {
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(grace):
		return fmt.Errorf("interrupted before the server has answered: %w", ctx.Err())
	}
}

// exceptExpected returns handlers that log neither errors of the discovery of types, which it also returns, so that a command prints them
// once, nor those of a watch that the command has ended itself.
func exceptExpected(handlers []utilruntime.ErrorHandler) (quiet []utilruntime.ErrorHandler) {
	for _, handle := range handlers {
		quiet = append(quiet, func(ctx context.Context, err error, message string, values ...any) {
			if !errors.Is(err, context.Canceled) && !strings.HasPrefix(message, "Couldn't get current server API group list") {
				handle(ctx, err, message, values...)
			}
		})
	}
	return quiet
}
