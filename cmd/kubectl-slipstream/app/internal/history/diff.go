// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/restore"
)

const diffExample = `  # What has changed in a Deployment within a day
  kubectl slipstream diff deployment/web -n shop --from 24h

  # What a commit has changed in the namespace shop
  kubectl slipstream diff -n shop --from 8548a58^ --to 8548a58

  # How objects with a label differ from this morning
  kubectl slipstream diff -n shop -l app=web --from 2026-07-03T08:00:00Z`

// toLive is the value of --to for the objects in the cluster.
const toLive = "live"

// difference is the command diff.
type difference struct {
	session
	from, to, labels string
}

// NewDiff returns the command diff. It requires the flag --from.
func NewDiff(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	d := &difference{session: session{IOStreams: streams, config: config}}
	command := &cobra.Command{
		Use:   "diff [TYPE | TYPE/NAME...] --from T",
		Short: "Compare objects with what they were, or two earlier states",
		Long: "Compare objects, those of a type, or all mirrored ones of the namespace, with what they were at some time. T is a time, a time ago\n" +
			"such as 24h, a commit, or the name of a Change; with ^ after a commit or Change, the state before it. The contents are compared\n" +
			"without what the cluster maintains, such as the status. Values of Secrets are not shown.\n\n" +
			"The exit code is 0 if there is no difference, and 1 if there is one.",
		Example: diffExample,
		RunE:    func(command *cobra.Command, args []string) error { return d.run(command.Context(), args) },
	}
	flags := command.Flags()
	flags.StringVar(&d.from, "from", "", "The earlier state, T. Without it, ENVIRONMENT is compared with its catalog.")
	flags.StringVar(&d.to, "to", toLive, "With --from: the later state, or live for the objects in the cluster.")
	flags.StringVarP(&d.labels, "selector", "l", "", "With --from: compare only objects with these labels, such as app=web.")
	d.addDestinationFlag(command)
	return command
}

func (d *difference) run(ctx context.Context, args []string) error {
	if d.from == "" {
		return errors.New("--from is missing: it is a time, a time ago such as 24h, a commit, or the name of a Change")
	}
	if err := d.connect(); err != nil {
		return err
	}
	from, err := d.at("--from", d.from)
	if err != nil {
		return err
	}
	sel, err := d.selected(args, d.labels)
	if err != nil {
		return err
	}
	destination, err := d.destinationOf(ctx, sel, from)
	if err != nil {
		return err
	}
	then, err := d.read(ctx, destination, sel, from)
	if err != nil {
		return err
	}
	d.warn(then)
	var pairs []compared
	if d.to == toLive {
		pairs, err = d.withCluster(ctx, destination, sel, then)
	} else {
		pairs, err = d.withPast(ctx, destination, sel, then)
	}
	if err != nil {
		return err
	}
	if len(pairs) == 0 && len(sel.objects) > 0 {
		return fmt.Errorf("%s is not in Git, neither then nor now", sel.objects[0])
	}
	return d.print(pairs, then)
}

// withPast compares with another state of Git.
func (d *difference) withPast(
	ctx context.Context, destination v1alpha1.NamespacedObjectReference, sel *selection, then *past,
) ([]compared, error) {
	to, err := d.at("--to", d.to)
	if err != nil {
		return nil, err
	}
	now, err := d.read(ctx, destination, sel, to)
	if err != nil {
		return nil, err
	}
	d.warn(now)
	then.refused = cmp.Or(then.refused, now.refused)
	var pairs []compared
	was, is := then.all(), now.all()
	for key, object := range was {
		pairs = append(pairs, compared{Object: named(object), then: object, now: is[key]})
	}
	for key, object := range is {
		if was[key] == nil {
			pairs = append(pairs, compared{Object: named(object), now: object})
		}
	}
	return pairs, nil
}

// withCluster compares with the cluster: the objects of the state, and those that Git has now.
func (d *difference) withCluster(
	ctx context.Context, destination v1alpha1.NamespacedObjectReference, sel *selection, then *past,
) ([]compared, error) {
	present, err := d.read(ctx, destination, sel, "")
	if err != nil {
		return nil, err
	}
	pairs, err := d.withLive(ctx, then.all(), present.all(), func(object *unstructured.Unstructured, err error) {
		d.note("%s/%s is left out: %v", object.GetKind(), object.GetName(), err)
	})
	if err != nil {
		return nil, err
	}
	for i := range pairs {
		if pairs[i].then, err = restore.WithIgnored(then.ignored, pairs[i].live, pairs[i].then); err != nil {
			return nil, err
		}
	}
	return pairs, nil
}

// print prints the differences, and returns cli.ErrDifferent if there are any.
func (d *difference) print(pairs []compared, then *past) error {
	slices.SortFunc(pairs, compareObjects)
	different := 0
	for _, pair := range pairs {
		if pair.Kind.GroupKind() == secretKind {
			pair.then, pair.now = hidden(pair.then, pair.now, then.refused != nil)
		}
		name := pair.Resource.GroupResource().String() + "/" + pair.Name
		if pair.Resource.Resource == "" {
			name = pair.Object.String()
		}
		if pair.Namespace != "" {
			name = pair.Namespace + "/" + name
		}
		differs, err := writeDifference(d.Out, "a/"+name, "b/"+name, pair.then, pair.now)
		if err != nil {
			return err
		}
		if differs {
			different++
		}
	}
	if then.refused != nil && slices.ContainsFunc(pairs, func(c compared) bool { return c.Kind.GroupKind() == secretKind }) {
		d.note("Values of Secrets are not compared: %v", then.refused)
	}
	if different > 0 {
		d.note("%d of %d objects differ", different, len(pairs))
		return cli.ErrDifferent
	}
	d.note("No difference in %d objects", len(pairs))
	return nil
}

func compareObjects(a, b compared) int {
	return cmp.Or(cmp.Compare(a.Kind.Group, b.Kind.Group), cmp.Compare(a.Kind.Kind, b.Kind.Kind), cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name))
}
