// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"path/filepath"
	"strings"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
)

// Arguments returns the arguments of the plugin for those of the process, of which the first is the name under which it was started. Under
// the name of a hook, which is a link to the plugin, they begin with the command that the hook stands for.
func Arguments(process []string) []string {
	if len(process) == 0 {
		return nil
	}
	name := strings.TrimSuffix(filepath.Base(process[0]), ".exe")
	return append(append([]string{}, cli.Hooks()[name]...), process[1:]...)
}
