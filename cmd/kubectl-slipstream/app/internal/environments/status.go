// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

const statusExample = `  # Catalogs, environments and destinations of the namespace teams
  kubectl slipstream status -n teams

  # Everything in the cluster, also pipelines, and changes as they come
  kubectl slipstream status -A -w

  # Fail in a script unless all environments with a label are in sync
  kubectl slipstream status -n teams -l team=a --exit-code`

// maxForeign is the number of catalogs of other namespaces that are read for the environments of one.
const maxForeign = 20

// status is the command status.
type status struct {
	genericiooptions.IOStreams
	config        genericclioptions.RESTClientGetter
	allNamespaces bool
	labels        string
	watch         bool
	exitCode      bool
	output        string

	namespace string
	selector  labels.Selector
	tables    *cli.Tables
	// versions are the resourceVersions of the lists, by resource.
	versions map[string]string
	// refusal is the first error of a list that the user has no permission for.
	refusal error
}

func newStatus(streams genericiooptions.IOStreams, config genericclioptions.RESTClientGetter) *cobra.Command {
	s := &status{IOStreams: streams, config: config}
	command := &cobra.Command{
		Use:   "status",
		Short: "Show catalogs with their environments, destinations and pipelines, and what each waits for",
		Long: "Show the catalogs of a namespace with their environments, and its GitDestinations. SyncPipelines belong to no namespace: -A shows\n" +
			"them, too. REV is the revision of a catalog, or the one that an environment has and the one that is offered, such as r41->r42, or\n" +
			"the commit of a destination. WAITS FOR is empty if an environment is in sync, and `you` if a user has to act. The sentences\n" +
			"in STATE are those of kubectl get, cut to the width of the terminal or COLUMNS, or to 100 characters; -o wide cuts nothing.",
		Example: statusExample,
		Args:    cobra.NoArgs,
		RunE:    func(command *cobra.Command, _ []string) error { return s.run(command.Context()) },
	}
	flags := command.Flags()
	flags.BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, "Show all namespaces.")
	flags.StringVarP(&s.labels, "selector", "l", "", "Show only objects with these labels, such as team=a, and the catalogs of environments that have them.")
	flags.BoolVarP(&s.watch, "watch", "w", false, "Then show changes as they come, until Ctrl-C: on a terminal in place, otherwise a line for each.")
	flags.BoolVar(&s.exitCode, "exit-code", false, "Exit with 1 if an environment is not in sync, or something else is not ready.")
	flags.StringVarP(&s.output, "output", "o", "", "Output format: json, yaml, name or wide.")
	command.MarkFlagsMutuallyExclusive("watch", "exit-code")
	return command
}

// validate checks the flags.
func (s *status) validate() (err error) {
	if !slices.Contains([]string{"", "json", "yaml", "name", "wide"}, s.output) {
		return fmt.Errorf("--output is %q: it is json, yaml, name or wide", s.output)
	}
	if s.watch && s.output != "" && s.output != "wide" {
		return fmt.Errorf("--output is %s: with --watch it is wide, or absent", s.output)
	}
	if s.selector, err = labels.Parse(s.labels); err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	if s.allNamespaces {
		return nil
	}
	s.namespace, _, err = s.config.ToRawKubeConfigLoader().Namespace()
	return err
}

func (s *status) run(ctx context.Context) (err error) {
	if err := s.validate(); err != nil {
		return err
	}
	if s.tables, err = cli.NewTables(s.config); err != nil {
		return err
	}
	found, err := s.load(ctx)
	if err != nil {
		return err
	}
	roots := found.tree(s.selector)
	switch s.output {
	case "json", "yaml", "name":
		err = writeItems(s.Out, flat(roots), s.output)
	default:
		err = s.show(ctx, found, roots)
	}
	if err != nil {
		return err
	}
	if s.exitCode {
		return s.verdict(flat(roots))
	}
	return nil
}

// verdict returns an error unless all lines are in sync. What the user may not list, and a selector that matches nothing, is not known to be.
func (s *status) verdict(lines []*line) error {
	switch {
	case s.refusal != nil:
		return fmt.Errorf("--exit-code: not everything is known: %w", s.refusal)
	case len(lines) == 0:
		return errors.New("--exit-code: nothing matches, so nothing is known to be in sync")
	case slices.ContainsFunc(lines, func(l *line) bool { return !l.inSync }):
		return cli.ErrDifferent
	}
	return nil
}

// show prints a tree, and then its changes if they are wanted.
func (s *status) show(ctx context.Context, found view, roots []*line) error {
	if s.watch {
		return (&statusWatch{status: s, view: found, printer: s.printer()}).run(ctx, roots)
	}
	if len(roots) == 0 {
		where := "in any namespace"
		if !s.allNamespaces {
			where = "in namespace " + s.namespace
		}
		s.note("No catalogs, environments or destinations found %s", where)
		return nil
	}
	return s.printer().print(roots)
}

func (s *status) printer() *statusPrinter {
	return &statusPrinter{
		out: s.Out, width: cli.Width(s.Out), boxes: cli.IsTerminal(s.Out), colours: cli.HasColours(s.Out),
		namespaces: s.allNamespaces, wide: s.output == "wide", namespace: s.namespace,
	}
}

// note prints a line for the user that is no output. Errors of the server in it are not trusted.
func (s *status) note(format string, args ...any) {
	_, _ = fmt.Fprintln(s.ErrOut, printable.Line(fmt.Sprintf(format, args...))) // Nothing depends on it.
}

// resources are those that are listed. Pipelines belong to no namespace.
func (s *status) resources() []string {
	resources := []string{catalogs, environments, destinations, records}
	if s.allNamespaces {
		resources = append(resources, pipelines)
	}
	return resources
}

// selection selects the objects of a resource. Catalogs are shown for their environments, too, and records have no labels.
func (s *status) selection(resource string) cli.Selection {
	of := cli.Selection{Resource: resource, Namespace: s.namespace, Labels: s.labels}
	if resource == catalogs || resource == records {
		of.Labels = ""
	}
	return of
}

// load lists all resources. It names those that the user may not list, and fails if there are no others.
func (s *status) load(ctx context.Context) (view, error) {
	resources := s.resources()
	type result struct {
		page    *cli.TablePage
		refused error
	}
	results := make([]result, len(resources))
	group, lists := errgroup.WithContext(ctx)
	for i, resource := range resources {
		group.Go(func() (err error) {
			r := &results[i]
			r.page, err = s.tables.List(lists, s.selection(resource))
			if apierrors.IsForbidden(err) {
				r.refused, err = err, nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	found, refused := view{}, []string(nil)
	s.versions = map[string]string{}
	for i, resource := range resources {
		if r := &results[i]; r.refused != nil {
			refused, s.refusal = append(refused, resource), cmp.Or(s.refusal, r.refused)
			continue
		}
		if err := found.set(resource, results[i].page.Columns, results[i].page.Rows); err != nil {
			return nil, err
		}
		s.versions[resource] = results[i].page.Version
	}
	if len(refused) == len(resources) {
		return nil, s.refusal
	}
	if len(refused) > 0 {
		s.note("Not shown, because you may not list them%s: %s", s.where(), strings.Join(refused, ", "))
	}
	return found, s.addForeign(ctx, found)
}

func (s *status) where() string {
	if s.allNamespaces {
		return " in all namespaces"
	}
	return " in namespace " + s.namespace
}

// addForeign reads the catalogs of other namespaces that environments are made from. Those that the user may not read have no state.
func (s *status) addForeign(ctx context.Context, found view) error {
	if s.allNamespaces || found[environments] == nil {
		return nil
	}
	missing := map[object]bool{}
	for of := range found[environments].rows {
		catalog := found.line(of).catalog
		if catalog.namespace != s.namespace && !missing[catalog] && len(missing) < maxForeign {
			missing[catalog] = true
		}
	}
	for catalog := range missing {
		r, of, err := s.tables.Get(ctx, catalogs, catalog.namespace, catalog.name)
		var status apierrors.APIStatus
		switch {
		case errors.As(err, &status):
			continue
		case err != nil:
			return err
		}
		if found[catalogs] == nil {
			if err := found.set(catalogs, of, nil); err != nil {
				return err
			}
		}
		found[catalogs].rows[object{catalogs, r.Namespace, r.Name}] = r
	}
	return nil
}
