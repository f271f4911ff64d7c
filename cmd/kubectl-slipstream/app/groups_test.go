// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app"
)

// TestHelpHasGroups checks that each command of the plugin is in a group of the help.
func TestHelpHasGroups(t *testing.T) {
	command := app.NewCommand(genericiooptions.NewTestIOStreamsDiscard())
	for _, child := range command.Commands() {
		if child.GroupID == "" && child.Name() != "options" {
			t.Errorf("%s is in no group", child.Name())
		}
	}
}

// TestFlagsOfAllCommands checks that only the command options shows the flags of all commands.
func TestFlagsOfAllCommands(t *testing.T) {
	for arguments, shows := range map[string]bool{"--help": false, "pause --help": false, "options": true} {
		streams, _, out, _ := genericiooptions.NewTestIOStreams()
		command := app.NewCommand(streams)
		command.SetArgs(strings.Fields(arguments))
		if err := command.Execute(); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(out.Bytes(), []byte("--kubeconfig")) != shows || !shows && !bytes.Contains(out.Bytes(), []byte("options")) {
			t.Errorf("%s prints:\n%s", arguments, out)
		}
	}
}
