// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app implements the kubectl plugin of Slipstream.
package app

import (
	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	client "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
)

// NewCommand returns the plugin. It does not print errors; ExitCode distinguishes them.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	config := genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(300).WithDiscoveryQPS(50).WithWrapConfigFn(
		func(found *rest.Config) *rest.Config {
			found.QPS, found.Burst = 50, 300 // As in kubectl.
			return found
		})
	root := &cobra.Command{
		Use:           "kubectl-slipstream",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl slipstream"},
		Short:         "See who changed what and get it back, what an Environment lacks, and have a SyncPipeline send now",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	config.AddFlags(root.PersistentFlags())
	root.AddCommand(
		newBlame(streams, config), newDiff(streams, config), newLog(streams, config), newMCP(streams, config), newMissing(streams, config),
		newRestore(streams, config), newShow(streams, config), newSyncPipeline(streams, config), newUndo(streams, config))
	return root
}

// connect returns clients for the API server of flags and kubeconfigs. Warnings are written to the error stream.
func connect(config genericclioptions.RESTClientGetter, streams genericiooptions.IOStreams) (client.ConfigbutlerV1alpha1Interface, error) {
	found, err := config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	found.WarningHandler = rest.NewWarningWriter(streams.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	clients, err := versioned.NewForConfig(found)
	if err != nil {
		return nil, err
	}
	return clients.ConfigbutlerV1alpha1(), nil
}
