// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	apply "github.com/configbutler/slipstream/pkg/generated/applyconfiguration/configbutler/v1alpha1"
)

const catalogExample = `  # Print a catalog of two workloads of the namespace shop, for environments of the namespace teams
  kubectl slipstream catalog production -n teams --from shop --workloads deployment/web,cronjob/report

  # Offer all workloads with a label, and apply it
  kubectl slipstream catalog production -n teams --from shop -l app=web --apply`

// operators are those of selectors in objects, by those of selectors in text.
var operators = map[selection.Operator]metav1.LabelSelectorOperator{
	selection.Equals: metav1.LabelSelectorOpIn, selection.DoubleEquals: metav1.LabelSelectorOpIn, selection.In: metav1.LabelSelectorOpIn,
	selection.NotEquals: metav1.LabelSelectorOpNotIn, selection.NotIn: metav1.LabelSelectorOpNotIn,
	selection.Exists: metav1.LabelSelectorOpExists, selection.DoesNotExist: metav1.LabelSelectorOpDoesNotExist,
}

// catalog is the command catalog.
type catalog struct {
	creator
	from, selector string
	workloads      []string
}

func newCatalog(streams genericiooptions.IOStreams, config genericclioptions.RESTClientGetter) *cobra.Command {
	c := &catalog{creator: newCreator(streams, config)}
	command := &cobra.Command{
		Use:   "catalog NAME --from NAMESPACE",
		Short: "Create an AppCatalog of the workloads of a namespace: print it, or create it with --apply",
		Long: "Print an AppCatalog that offers workloads of another namespace to environments. Without --workloads and --selector it offers\n" +
			"all of them, also those that are created later.",
		Example: catalogExample,
		Args:    cobra.ExactArgs(1),
		RunE:    func(command *cobra.Command, args []string) error { return c.run(command.Context(), args[0]) },
	}
	flags := command.Flags()
	flags.StringVar(&c.from, "from", "", "Namespace with the workloads.")
	flags.StringSliceVar(&c.workloads, "workloads", nil, "Workloads to offer, such as deployment/web,cronjob/report. Can be repeated.")
	flags.StringVarP(&c.selector, "selector", "l", "", "Labels of the workloads to offer, such as app=web.")
	c.addFlags(command)
	return command
}

func (c *catalog) run(ctx context.Context, name string) error {
	namespace, err := c.namespace()
	if err != nil {
		return err
	}
	if c.from == "" {
		return errors.New("--from is missing: give the namespace with the workloads")
	}
	spec := apply.AppCatalogSpec().WithSourceNamespace(c.from)
	workloads, err := workloadReferences("--workloads", c.workloads)
	if err != nil {
		return err
	}
	spec.WithWorkloads(workloads...)
	if c.selector != "" || len(c.workloads) == 0 {
		if spec.WorkloadSelector, err = selectorOf(c.selector); err != nil {
			return err
		}
	}
	c.needs = append(c.needs, needsNamespace("--from", c.from))
	next := fmt.Sprintf("kubectl wait appcatalog/%s -n %s --for=condition=Ready", name, namespace)
	return c.create(ctx, next, manifest{resource: "appcatalogs", configuration: apply.AppCatalog(name, namespace).WithSpec(spec), flags: map[string]string{
		"metadata.name": "NAME", "metadata.namespace": "--namespace", "spec.sourceNamespace": "--from", "spec.workloads": "--workloads",
		"spec.workloadSelector": "--selector",
	}})
}

// workloadReferences reads the workloads of a flag.
func workloadReferences(flag string, texts []string) ([]*apply.WorkloadReferenceApplyConfiguration, error) {
	references := make([]*apply.WorkloadReferenceApplyConfiguration, len(texts))
	for i, text := range texts {
		workload, err := cli.ParseWorkload(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		references[i] = apply.WorkloadReference().WithKind(workload.Kind).WithName(workload.Name)
	}
	return references, nil
}

// selectorOf returns a selector that was written as for kubectl. The empty one matches everything.
func selectorOf(text string) (*applymeta.LabelSelectorApplyConfiguration, error) {
	requirements, err := labels.ParseToRequirements(text)
	if err != nil {
		return nil, fmt.Errorf("--selector is %q: %w", text, err)
	}
	selector := applymeta.LabelSelector()
	for _, each := range requirements {
		values := each.ValuesUnsorted()
		operator, known := operators[each.Operator()]
		_, again := selector.MatchLabels[each.Key()]
		switch {
		case !known:
			return nil, fmt.Errorf("--selector is %q: %s is not possible here", text, each.Operator())
		case operator == metav1.LabelSelectorOpIn && len(values) == 1 && !again:
			selector.WithMatchLabels(map[string]string{each.Key(): values[0]})
		default:
			slices.Sort(values)
			selector.WithMatchExpressions(applymeta.LabelSelectorRequirement().WithKey(each.Key()).WithOperator(operator).WithValues(values...))
		}
	}
	return selector, nil
}
