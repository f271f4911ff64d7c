// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	apply "github.com/configbutler/slipstream/pkg/generated/applyconfiguration/configbutler/v1alpha1"
)

const environmentExample = `  # Print an environment of the catalog production, whose workloads are written to the namespace shop-alice
  kubectl slipstream environment alice -n teams --catalog production --target shop-alice

  # Apply one that follows the catalog by itself, in a new namespace, for three days
  kubectl slipstream environment alice -n teams --catalog production --target shop-alice --create-namespace --auto --ttl 72h --apply

  # Apply one for work on the Deployment web, which keeps changes that are made to it there
  kubectl slipstream environment bob -n teams --catalog production --target shop-bob --create-namespace --branch deployment/web --apply`

// environment is the command environment.
type environment struct {
	creator
	catalog, target       string
	auto, createNamespace bool
	branch                []string
	ttl                   time.Duration
}

func newEnvironment(streams genericiooptions.IOStreams, config genericclioptions.RESTClientGetter) *cobra.Command {
	e := &environment{creator: newCreator(streams, config)}
	command := &cobra.Command{
		Use:     "environment NAME --catalog CATALOG --target NAMESPACE",
		Short:   "Create an Environment with the workloads of a catalog: print it, or create it with --apply",
		Example: environmentExample,
		Args:    cobra.ExactArgs(1),
		RunE:    func(command *cobra.Command, args []string) error { return e.run(command.Context(), args[0]) },
	}
	flags := command.Flags()
	flags.StringVar(&e.catalog, "catalog", "", "The AppCatalog, as [NAMESPACE/]NAME.")
	flags.StringVar(&e.target, "target", "", "Namespace to which the workloads are written. No other environment may write there.")
	flags.BoolVar(&e.createNamespace, "create-namespace", false, "Create that namespace, and delete it with the environment.")
	flags.BoolVar(&e.auto, "auto", false, "Sync changes of the catalog by itself. Otherwise they wait for a request.")
	flags.StringSliceVar(&e.branch, "branch", nil,
		"Make an environment of the type Branch with these workloads only, such as deployment/web. It keeps changes that are made to\n"+
			"them in the target namespace. Can be repeated.")
	cli.DurationVar(flags, &e.ttl, "ttl", 0, "Time after which the environment is deleted, such as 72h or 7d. 0 means never.")
	e.addFlags(command)
	return command
}

func (e *environment) run(ctx context.Context, name string) error {
	namespace, err := e.namespace()
	if err != nil {
		return err
	}
	switch {
	case e.catalog == "":
		return errors.New("--catalog is missing: give the name of an AppCatalog")
	case e.target == "":
		return errors.New("--target is missing: give the namespace to which the workloads are written")
	}
	spec := apply.EnvironmentSpec().WithCatalogRef(reference(e.catalog)).WithTargetNamespace(e.target)
	if e.createNamespace {
		spec.WithCreateNamespace(true)
	}
	if e.auto {
		spec.WithAutoSync(true)
	}
	if e.ttl != 0 {
		spec.WithTTL(metav1.Duration{Duration: e.ttl})
	}
	workloads, err := workloadReferences("--branch", e.branch)
	if err != nil {
		return err
	}
	if len(workloads) > 0 {
		spec.WithType(v1alpha1.EnvironmentBranch).WithBranchWorkloads(workloads...)
	}
	next := fmt.Sprintf("kubectl slipstream sync %s -n %s", name, namespace)
	if e.auto {
		next = "kubectl slipstream status -w -n " + namespace
	}
	return e.create(ctx, next, manifest{resource: "environments", configuration: apply.Environment(name, namespace).WithSpec(spec), flags: map[string]string{
		"metadata.name": "NAME", "metadata.namespace": "--namespace", "spec.catalogRef": "--catalog", "spec.targetNamespace": "--target",
		"spec.branchWorkloads": "--branch", "spec.ttl": "--ttl",
	}})
}

// reference reads the name of an object in the form [NAMESPACE/]NAME.
func reference(text string) *apply.ObjectReferenceApplyConfiguration {
	namespace, name, qualified := strings.Cut(text, "/")
	if !qualified {
		return apply.ObjectReference().WithName(text)
	}
	return apply.ObjectReference().WithNamespace(namespace).WithName(name)
}
