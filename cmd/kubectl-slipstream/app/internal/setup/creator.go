// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/scheme"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// manifest is an object to create.
type manifest struct {
	// resource is the plural of its kind.
	resource string
	// configuration is the apply configuration, which has only the fields that are set.
	configuration any
	// flags are the flags that set fields of the spec, by the beginning of the field's path.
	flags map[string]string
	// object is built from the configuration.
	object *unstructured.Unstructured
}

// creator prints objects, or applies them.
type creator struct {
	genericiooptions.IOStreams
	config genericclioptions.RESTClientGetter
	print  *genericclioptions.PrintFlags
	apply  bool
	dryRun string
	// needs are checked before objects are applied.
	needs []need
	// rename says how to give the objects other names, if others manage fields of existing ones.
	rename string
}

func newCreator(streams genericiooptions.IOStreams, config genericclioptions.RESTClientGetter) creator {
	return creator{
		IOStreams: streams, config: config,
		print:  genericclioptions.NewPrintFlags("serverside-applied").WithTypeSetter(scheme.Scheme),
		rename: "give another NAME",
	}
}

func (c *creator) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVar(&c.apply, "apply", false, "Apply the objects (server-side) instead of printing them.")
	flags.StringVar(&c.dryRun, "dry-run", cli.DryRunNone, "none or server: with --apply, have the server check the objects, and store nothing.")
	flags.Lookup("dry-run").NoOptDefVal = cli.DryRunServer
	c.print.AddFlags(command)
}

// namespace returns the namespace of the flags or the kubeconfig.
func (c *creator) namespace() (string, error) {
	namespace, _, err := c.config.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// create validates the objects as the server does, and prints or applies them. Nothing is applied if one is invalid, if something is missing
// that they need, or if the server refuses one. next is printed after they were applied.
func (c *creator) create(ctx context.Context, next string, manifests ...manifest) error {
	printer, err := c.printer()
	if err != nil {
		return err
	}
	var problems []error
	for i := range manifests {
		problems = append(problems, manifests[i].build())
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if c.apply {
		if err := c.applyAll(ctx, manifests); err != nil {
			return err
		}
	}
	for _, each := range manifests {
		if err := printer.PrintObj(each.object, c.Out); err != nil {
			return err
		}
	}
	if c.apply && c.dryRun == cli.DryRunNone {
		_, _ = fmt.Fprintln(c.ErrOut, printable.Line("Next: "+next)) // Nothing depends on it.
	}
	return nil
}

// printer returns the printer for -o. Without -o, objects that are applied are printed as a line, others as YAML.
func (c *creator) printer() (printers.ResourcePrinter, error) {
	if c.dryRun != cli.DryRunNone && c.dryRun != cli.DryRunServer {
		return nil, fmt.Errorf("--dry-run is %q: it is none or server", c.dryRun)
	}
	if c.dryRun == cli.DryRunServer {
		if !c.apply {
			return nil, errors.New("--dry-run checks what is applied: add --apply")
		}
		if err := c.print.Complete("%s (server dry run)"); err != nil {
			return nil, err
		}
	}
	if !c.apply && !c.print.OutputFlagSpecified() {
		*c.print.OutputFormat = "yaml"
	}
	return c.print.ToPrinter()
}

// applyAll applies the objects. Several are checked by the server before the first is stored, so that a conflict leaves nothing behind.
func (c *creator) applyAll(ctx context.Context, manifests []manifest) error {
	config, err := c.config.ToRESTConfig()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := c.check(ctx, client); err != nil {
		return err
	}
	if len(manifests) > 1 && c.dryRun == cli.DryRunNone {
		silent := rest.CopyConfig(config)
		silent.WarningHandler = rest.NoWarnings{} // They come when the objects are stored.
		checker, err := dynamic.NewForConfig(silent)
		if err != nil {
			return err
		}
		for _, each := range manifests {
			if _, err := c.applyOne(ctx, checker, each, cli.DryRunServer); err != nil {
				return err
			}
		}
	}
	for i := range manifests {
		if manifests[i].object, err = c.applyOne(ctx, client, manifests[i], c.dryRun); err != nil {
			return err
		}
	}
	return nil
}

func (c *creator) applyOne(ctx context.Context, client dynamic.Interface, of manifest, dryRun string) (*unstructured.Unstructured, error) {
	options := metav1.ApplyOptions{FieldManager: cli.FieldManager}
	if dryRun == cli.DryRunServer {
		options.DryRun = []string{metav1.DryRunAll}
	}
	in := client.Resource(v1alpha1.SchemeGroupVersion.WithResource(of.resource)).Namespace(of.object.GetNamespace())
	object, err := in.Apply(ctx, of.object.GetName(), of.object, options)
	if apierrors.IsConflict(err) {
		return nil, fmt.Errorf("%s %s exists, and others have set fields of it: %s: %w", of.object.GetKind(), of.object.GetName(), c.rename, err)
	}
	return object, err
}

// build sets the object, and returns an error if it is not valid.
func (m *manifest) build() error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m.configuration)
	if err != nil {
		return fmt.Errorf("encode an object of %s: %w", m.resource, err)
	}
	m.object = &unstructured.Unstructured{Object: fields}
	errs, err := validate(m.object)
	if err != nil {
		return err
	}
	return m.explained(errs)
}

// explained returns the errors of fields with the flags that set them.
func (m *manifest) explained(errs field.ErrorList) error {
	all := make([]error, 0, len(errs))
	for _, each := range errs {
		flag := ""
		for path, name := range m.flags {
			if strings.HasPrefix(each.Field, path) {
				flag = name + ": "
			}
		}
		all = append(all, fmt.Errorf("%s%s %s: %w", flag, m.object.GetKind(), m.object.GetName(), each))
	}
	return errors.Join(all...)
}
