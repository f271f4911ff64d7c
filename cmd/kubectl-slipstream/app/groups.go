// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strings"

	"github.com/spf13/cobra"
)

// commandGroups returns the names of the commands by group, in the order of the help.
func commandGroups() []struct{ title, commands string } {
	return []struct{ title, commands string }{
		{"History", "log show diff blame undo restore mcp"},
		{
			"Catalogs and environments",
			"status dashboard explain-drift sync dismiss undismiss resolve retry rollback unpin missing secretdiff rediscover",
		},
		{"Stop and start", "pause resume suspend unsuspend sync-pipeline"},
		{"First manifests", "mirror catalog environment pipeline"},
		{"Setup", "check version notify webhook-config bootstrap install-hooks completion"},
	}
}

// addGroups shows the commands of the root in groups.
func addGroups(root *cobra.Command) {
	groups := map[string]string{}
	for _, group := range commandGroups() {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title + ":"})
		for _, name := range strings.Fields(group.commands) {
			groups[name] = group.title
		}
	}
	for _, command := range root.Commands() {
		command.GroupID = groups[command.Name()]
	}
}

// usage returns the template of cobra without the flags that all commands have, which options shows, as in kubectl.
func usage(root *cobra.Command) string {
	return strings.NewReplacer(
		"{{if .HasAvailableLocalFlags}}", "{{if and .HasParent .HasAvailableLocalFlags}}",
		"{{if .HasAvailableInheritedFlags}}", "{{if false}}",
	).Replace(root.UsageTemplate()) + "\nUse \"{{.Root.CommandPath}} options\" for the flags of all commands, such as --context.\n"
}

// newOptions returns the command that shows the flags of all commands.
func newOptions() *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "Print the flags of all commands, which set the cluster, the user and the namespace",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			command.Print(command.Root().PersistentFlags().FlagUsages())
			return nil
		},
	}
}
