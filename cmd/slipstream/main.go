// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Command slipstream is the API server of the group configbutler.ai with its controllers.
package main

import (
	"fmt"
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"

	"github.com/configbutler/slipstream/cmd/slipstream/app"
)

func main() {
	ctx := genericapiserver.SetupSignalContext()
	err := cli.RunNoErrOutput(app.NewCommand(ctx))
	if err != nil {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
	}
	os.Exit(app.ExitCode(err))
}
