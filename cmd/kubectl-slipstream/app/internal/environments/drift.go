// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	client "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

const explainDriftExample = `  # Why the environment bob differs from production
  kubectl slipstream explain-drift bob -n teams

  # Why its Deployment web does
  kubectl slipstream explain-drift bob deployment/web -n teams`

const (
	// driftFields is the number of fields that are shown of an object, and driftValue the length of a value in characters.
	driftFields, driftValue = 10, 60
)

// explainDrift is the command explain-drift.
type explainDrift struct {
	genericiooptions.IOStreams
	config genericclioptions.RESTClientGetter
}

func newExplainDrift(streams genericiooptions.IOStreams, config genericclioptions.RESTClientGetter) *cobra.Command {
	e := &explainDrift{IOStreams: streams, config: config}
	return &cobra.Command{
		Use:   "explain-drift ENVIRONMENT [KIND/NAME]",
		Short: "Explain why an Environment differs from production, and what to do",
		Long: "Show what differs, who changed it in production and how that is known, who owns it in the Environment, why the change is not taken,\n" +
			"and a command that takes it. What the server does not know is said to be unknown. Values of Secrets are not shown.",
		Example: explainDriftExample,
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(command *cobra.Command, args []string) error {
			_, name, err := cli.ParseName(args[0], cli.Environment)
			if err != nil {
				return err
			}
			return e.run(command.Context(), name, args[1:])
		},
	}
}

func (e *explainDrift) run(ctx context.Context, name string, of []string) error {
	namespace, _, err := e.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	api, err := cli.Connect(e.config)
	if err != nil {
		return err
	}
	environment, err := api.Environments(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	found, err := api.Environments(namespace).Diff(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	x := &explanation{
		environment: environment, plan: &found.Status, arrow: "->",
		diff: &diffPrinter{colours: cli.HasColours(e.Out), now: time.Now()},
	}
	if cli.IsTerminal(e.Out) {
		x.arrow = "→"
	}
	changes := x.plan.Changes
	if len(of) > 0 {
		if changes, err = named(changes, of[0]); err != nil {
			return err
		}
	}
	if len(changes) == 0 {
		err = e.explainNone(ctx, api, x, of)
	} else {
		x.explain(changes)
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(e.Out, x.diff.text.String())
	return err
}

// named returns the changes of an object that is given as KIND/NAME.
func named(changes []v1alpha1.ObjectChange, object string) ([]v1alpha1.ObjectChange, error) {
	kind, name, complete := strings.Cut(object, "/")
	if !complete || kind == "" || name == "" {
		return nil, fmt.Errorf("%q names no object: it is KIND/NAME, such as deployment/web", object)
	}
	return slices.DeleteFunc(slices.Clone(changes), func(c v1alpha1.ObjectChange) bool {
		return c.Name != name || !strings.EqualFold(c.Kind, kind) && !strings.EqualFold(c.Kind+"s", kind)
	}), nil
}

// explainNone says that nothing differs, and what is known about the catalog.
func (e *explainDrift) explainNone(ctx context.Context, api client.AppCatalogsGetter, x *explanation, of []string) error {
	if len(of) > 0 && len(x.plan.Changes) > 0 {
		var names []string
		for i := range x.plan.Changes {
			names = append(names, nameOf(&x.plan.Changes[i]))
		}
		x.diff.line("", fmt.Sprintf("%s does not differ, or is no object of Environment %s. These differ: %s",
			of[0], x.environment.Name, summary.List(names)))
		return nil
	}
	x.diff.line("", fmt.Sprintf("Environment %s has what its catalog offers at r%d", x.environment.Name, x.plan.Revision))
	x.item("state", x.environment.Status.State)
	ref := x.environment.Spec.CatalogRef.NamespacedName(x.environment.Namespace)
	catalog, err := api.AppCatalogs(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		x.item("catalog", fmt.Sprintf("whether %s follows production is not known: %s", ref, status.Status().Message))
	case err != nil:
		return err
	default:
		x.item("catalog", followed(catalog))
	}
	return nil
}

// followed says whether a catalog offers what its source has.
func followed(catalog *v1alpha1.AppCatalog) string {
	conditions := catalog.Status.Conditions
	if paused := apimeta.FindStatusCondition(conditions, v1alpha1.ConditionPaused); paused != nil && paused.Status == metav1.ConditionTrue {
		return "does not take changes of " + catalog.Spec.SourceNamespace + ": " + paused.Message
	}
	return fmt.Sprintf("follows %s: %s", catalog.Spec.SourceNamespace, summary.Catalog(catalog))
}

// explanation explains the changes of a plan.
type explanation struct {
	environment *v1alpha1.Environment
	plan        *v1alpha1.SyncPlan
	arrow       string
	diff        *diffPrinter
}

// item adds a line about an object.
func (x *explanation) item(label, text string) {
	if text != "" {
		x.diff.line("", fmt.Sprintf("  %-10s  %s", label, text))
	}
}

// explain explains changes. A cause that all have in common is said once.
func (x *explanation) explain(changes []v1alpha1.ObjectChange) {
	causes := make([]cause, len(changes))
	for i := range changes {
		causes[i] = causeOf(x.environment, &changes[i])
	}
	common := !slices.ContainsFunc(causes, func(c cause) bool { return c != causes[0] })
	for i := range changes {
		x.object(&changes[i])
		if !common || len(changes) == 1 {
			x.cause(causes[i])
		}
	}
	if common && len(changes) > 1 {
		x.diff.line("", fmt.Sprintf("All %d objects", len(changes)))
		x.cause(causes[0])
	}
}

func (x *explanation) cause(c cause) {
	x.item("why not", c.why)
	x.item("do", c.do)
}

// object explains what differs in an object, and who made it so.
func (x *explanation) object(change *v1alpha1.ObjectChange) {
	name := nameOf(change)
	here := x.applied()
	switch {
	case change.ChangeType == v1alpha1.ChangeAdded:
		x.diff.line(cli.Bold, name+" is missing here")
		here = ""
	case change.ChangeType == v1alpha1.ChangeRemoved:
		x.diff.line(cli.Bold, name+" is here, and no longer offered")
	case len(change.Fields) == 1:
		field := &change.Fields[0]
		x.diff.line(cli.Bold, name+" is behind by one change: "+x.field(change, field))
		here = joined(x.value(change, field, field.Before), owned(change.Fields), here)
	default:
		x.diff.line(cli.Bold, fmt.Sprintf("%s is behind by %d changes", name, len(change.Fields)))
		for i := range change.Fields[:min(driftFields, len(change.Fields))] {
			x.item("field", x.field(change, &change.Fields[i])+ownersOf(&change.Fields[i]))
		}
		if more := len(change.Fields) - driftFields; more > 0 {
			x.item("", fmt.Sprintf("and %d more, see kubectl slipstream diff", more))
		}
		here = joined(owned(change.Fields), here)
	}
	x.item("production", x.production(change))
	x.item("here", here)
}

// production returns who changed an object in the source, as far as that is known.
func (x *explanation) production(change *v1alpha1.ObjectChange) string {
	by := authorsOf(change.ChangedBy, " (")
	if by == "" {
		by = "who changed it is not known"
	}
	return joined(by, x.diff.commit(change.Commits))
}

// applied returns the revision that the environment has.
func (x *explanation) applied() string {
	if x.plan.FromRevision == 0 {
		return "no revision is applied yet"
	}
	return fmt.Sprintf("applied at r%d", x.plan.FromRevision)
}

// field returns a field with its values here and in production.
func (x *explanation) field(change *v1alpha1.ObjectChange, field *v1alpha1.FieldChange) string {
	if field.Hidden {
		return hiddenField(change, field)
	}
	value := func(encoded *string) string {
		if encoded == nil {
			return "(none)"
		}
		return x.value(change, field, encoded)
	}
	return fmt.Sprintf("%s %s %s %s", dotted(field.Field), value(field.Before), x.arrow, value(field.After))
}

// value returns a value on one line, empty if there is none.
func (x *explanation) value(change *v1alpha1.ObjectChange, field *v1alpha1.FieldChange, encoded *string) string {
	return cli.Shorten(printable.Line(strings.Join(x.diff.value(change, field, encoded), " ")), driftValue)
}

// owned returns the owners of fields in the environment.
func owned(fields []v1alpha1.FieldChange) string {
	var owners []string
	for i := range fields {
		owners = append(owners, fields[i].Owners...)
	}
	slices.Sort(owners)
	if owners = slices.Compact(owners); len(owners) == 0 {
		return "the owner is not known"
	}
	return "owned by " + strings.Join(owners, ", ")
}

// joined joins texts that are not empty with commas.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), ", ")
}
