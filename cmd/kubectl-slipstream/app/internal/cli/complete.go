// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
)

const (
	// completionTimeout is how long a shell waits for completions, including the discovery of types.
	completionTimeout = 3 * time.Second
	// completionLimit is the number of names that are listed.
	completionLimit = 500
)

// Completer completes arguments and flags with what the cluster has, as far as the user may list it. Without a cluster, or
// if the user may list nothing, there are no completions.
type Completer struct {
	config  genericclioptions.RESTClientGetter
	timeout time.Duration
}

// NewCompleter returns a Completer for the cluster of flags and kubeconfigs.
func NewCompleter(config genericclioptions.RESTClientGetter) *Completer {
	return &Completer{config, completionTimeout}
}

// limited completes nothing if a completion takes too long. The process ends then: discovery, for one, takes no context.
func (c *Completer) limited(complete cobra.CompletionFunc) cobra.CompletionFunc {
	type completions struct {
		found     []cobra.Completion
		directive cobra.ShellCompDirective
	}
	return func(command *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		completed := make(chan completions, 1)
		go func() {
			found, directive := complete(command, args, prefix)
			completed <- completions{found, directive}
		}()
		select {
		case all := <-completed:
			return all.found, all.directive
		case <-time.After(c.timeout):
			cobra.CompDebugln("the cluster does not answer", false)
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
}

// Name completes the first argument with the names of a resource, in the namespace of the command unless it is cluster-scoped.
func (c *Completer) Name(resource schema.GroupVersionResource, clusterScoped bool) cobra.CompletionFunc {
	return c.limited(func(command *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c.names(command.Context(), resource, clusterScoped, prefix), cobra.ShellCompDirectiveNoFileComp
	})
}

// Flag completes a flag with the names of a resource.
func (c *Completer) Flag(resource schema.GroupVersionResource, clusterScoped bool) cobra.CompletionFunc {
	return c.limited(func(command *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return c.names(command.Context(), resource, clusterScoped, prefix), cobra.ShellCompDirectiveNoFileComp
	})
}

// Object completes an argument TYPE/NAME, or a name after a type.
func (c *Completer) Object(command *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return c.limited(c.object)(command, args, prefix)
}

func (c *Completer) object(command *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	of, name, qualified := strings.Cut(prefix, "/")
	if len(args) > 0 && !strings.Contains(args[0], "/") {
		of, name = args[0], prefix
	} else if !qualified {
		return c.types(prefix), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	resource, clusterScoped, err := c.resource(of)
	if err != nil {
		cobra.CompDebugln(err.Error(), false)
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := c.names(command.Context(), resource, clusterScoped, name)
	if qualified {
		for i := range names {
			names[i] = of + "/" + names[i]
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// names returns the names of a resource that begin with a prefix.
func (c *Completer) names(ctx context.Context, resource schema.GroupVersionResource, clusterScoped bool, prefix string) []string {
	names, err := c.list(ctx, resource, clusterScoped)
	if err != nil {
		cobra.CompDebugln(err.Error(), false) // To a log, if the user has set one.
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) })
	slices.Sort(names)
	return names
}

func (c *Completer) list(ctx context.Context, resource schema.GroupVersionResource, clusterScoped bool) ([]string, error) {
	namespace, _, err := c.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	if clusterScoped {
		namespace = metav1.NamespaceAll
	}
	config, err := c.config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	list, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: completionLimit})
	if err != nil {
		return nil, err
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return names, nil
}

// resource returns the resource that a user names, and whether it is cluster-scoped.
func (c *Completer) resource(text string) (schema.GroupVersionResource, bool, error) {
	mapper, err := c.config.ToRESTMapper()
	if err != nil {
		return schema.GroupVersionResource{}, false, err
	}
	resource, err := mapper.ResourceFor(schema.ParseGroupResource(text).WithVersion(""))
	if err != nil {
		return resource, false, err
	}
	kind, err := mapper.KindFor(resource)
	if err != nil {
		return resource, false, err
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return resource, false, err
	}
	return resource, mapping.Scope.Name() == meta.RESTScopeNameRoot, nil
}

// types returns the types that begin with a prefix, each with a slash after it.
func (c *Completer) types(prefix string) []string {
	client, err := c.config.ToDiscoveryClient()
	if err != nil {
		cobra.CompDebugln(err.Error(), false)
		return nil
	}
	lists, err := discovery.ServerPreferredResources(client)
	if err != nil {
		cobra.CompDebugln(err.Error(), false) // The others are listed.
	}
	var types []string
	for _, list := range lists {
		group, _, grouped := strings.Cut(list.GroupVersion, "/")
		for _, resource := range list.APIResources {
			name := resource.Name
			if grouped && strings.Contains(group, ".") {
				name += "." + group
			}
			if strings.HasPrefix(name, prefix) && slices.Contains(resource.Verbs, "list") {
				types = append(types, name+"/")
			}
		}
	}
	slices.Sort(types)
	return types
}
