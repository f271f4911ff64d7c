// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// targets are the objects that a command is about: one that is named, or all that a selector matches.
type targets struct {
	// kinds are those that the command takes, the default first.
	kinds    []cli.Kind
	selector string
}

// addTo adds the argument and the flag to a command, which needs one of them.
func (t *targets) addTo(command *cobra.Command) {
	command.Args = func(command *cobra.Command, args []string) error {
		if t.selector == "" {
			return cobra.ExactArgs(1)(command, args)
		}
		return cobra.MaximumNArgs(1)(command, args)
	}
	command.Flags().StringVarP(&t.selector, "selector", "l", "", "Select all objects with these labels, such as team=a, instead of one by its name.")
}

// parse returns the kind and the name of the object, or no name if a selector is given.
func (t *targets) parse(args []string) (cli.Kind, string, error) {
	switch {
	case t.selector == "":
		return cli.ParseName(args[0], t.kinds...)
	case len(args) == 0:
		return t.kinds[0], "", nil
	}
	kind, err := cli.ParseKind(args[0], t.kinds...)
	if err != nil {
		return kind, "", fmt.Errorf("give a name or -l SELECTOR, not both: %w", err)
	}
	return kind, "", nil
}

// find returns the names of the objects that the selector matches.
func (t *targets) find(ctx context.Context, r *requester, kind cli.Kind) ([]string, error) {
	objects, err := r.objects(kind)
	if err != nil {
		return nil, err
	}
	list, err := objects.List(ctx, metav1.ListOptions{LabelSelector: t.selector})
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		if kind.ClusterScoped {
			return nil, fmt.Errorf("no %s have the labels %s", kind.Resource, t.selector)
		}
		return nil, fmt.Errorf("no %s in the namespace %s have the labels %s", kind.Resource, r.Namespace, t.selector)
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].GetName()
	}
	return names, nil
}

// each calls do with the name, or with all names that the selector matches. After an error it continues with the next one: it prints the
// errors, and returns one of them with the highest exit code.
func (t *targets) each(ctx context.Context, r *requester, kind cli.Kind, name string, do func(name string) error) error {
	if name != "" {
		return do(name)
	}
	names, err := t.find(ctx, r, kind)
	if err != nil {
		return err
	}
	var worst error
	failed := 0
	for _, name := range names {
		err := do(name)
		if err == nil {
			continue
		}
		failed++
		_, _ = fmt.Fprintln(r.ErrOut, printable.Line(kind.Named(name)+": "+err.Error())) // Nothing depends on it.
		if cli.ExitCode(err) > cli.ExitCode(worst) {
			worst = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	if worst == nil {
		return nil
	}
	return fmt.Errorf("%d of %d failed, such as: %w", failed, len(names), worst)
}

// objects returns the client for the objects of a kind.
func (r *requester) objects(of cli.Kind) (dynamic.ResourceInterface, error) {
	found, err := r.Config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	clients, err := dynamic.NewForConfig(found)
	if err != nil {
		return nil, err
	}
	objects := clients.Resource(of.GroupVersionResource())
	if of.ClusterScoped {
		return objects, nil
	}
	return objects.Namespace(r.Namespace), nil
}
