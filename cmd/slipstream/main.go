// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Command slipstream is the API server of the group configbutler.ai with its controllers.
package main

import (
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"

	"github.com/configbutler/slipstream/cmd/slipstream/app"
)

func main() {
	ctx := genericapiserver.SetupSignalContext()
	os.Exit(cli.Run(app.NewCommand(ctx)))
}
