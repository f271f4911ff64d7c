// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"github.com/spf13/cobra"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// completedName is the resource whose names a command or a flag completes.
type completedName struct {
	resource      schema.GroupVersionResource
	clusterScoped bool
}

var (
	namespaces = completedName{schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, true}
	secrets    = completedName{schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, false}
)

func own(resource string) completedName {
	return completedName{v1alpha1.SchemeGroupVersion.WithResource(resource), false}
}

// completedArguments are the resources of the first argument, by command, which has its parent before it.
func completedArguments() map[string]completedName {
	pipelines := own("syncpipelines")
	pipelines.clusterScoped = true
	arguments := map[string]completedName{
		"notify test": own("notificationsinks"), "retry": own("syncstatuses"), "show": own("changes"), "sync-pipeline": pipelines,
		"undo": own("changes"),
	}
	for resource, commands := range map[string][]string{
		"environments": {
			"dismiss", "explain-drift", "missing", "rediscover", "resolve", "rollback", "secretdiff", "sync", "undismiss", "unpin",
		},
		"appcatalogs":     {"pause", "resume"},
		"gitdestinations": {"suspend", "unsuspend"},
	} {
		for _, command := range commands {
			arguments[command] = own(resource)
		}
	}
	return arguments
}

// completedObjects are the commands whose arguments are objects of any type.
func completedObjects() []string { return []string{"blame", "diff", "log", "restore"} }

// completedFlags are the resources of flags, by command and flag.
func completedFlags() map[string]map[string]completedName {
	destination := map[string]completedName{"destination": own("gitdestinations")}
	return map[string]map[string]completedName{
		"bootstrap": destination, "diff": destination, "restore": destination,
		"catalog":     {"from": namespaces},
		"environment": {"catalog": own("appcatalogs"), "target": namespaces},
		"mirror":      {"secret": secrets},
	}
}

// addCompletions makes the commands of the plugin complete names of objects.
func addCompletions(root *cobra.Command, completer *cli.Completer) error {
	if err := root.RegisterFlagCompletionFunc("namespace", completer.Flag(namespaces.resource, true)); err != nil {
		return err
	}
	commands := map[string]*cobra.Command{}
	for _, command := range root.Commands() {
		commands[command.Name()] = command
		command.ValidArgsFunction = cobra.NoFileCompletions
		for _, child := range command.Commands() {
			commands[command.Name()+" "+child.Name()] = child
		}
	}
	for name, of := range completedArguments() {
		commands[name].ValidArgsFunction = completer.Name(of.resource, of.clusterScoped)
	}
	for _, name := range completedObjects() {
		commands[name].ValidArgsFunction = completer.Object
	}
	for name, flags := range completedFlags() {
		for flag, of := range flags {
			if err := commands[name].RegisterFlagCompletionFunc(flag, completer.Flag(of.resource, of.clusterScoped)); err != nil {
				return err
			}
		}
	}
	return nil
}
