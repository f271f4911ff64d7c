// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/dynamic"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	client "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/objectcopy"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

const missingExample = `  # Look at what the environment alice lacks, and that the server does not copy
  kubectl slipstream missing alice -n teams

  # Create it, with your own rights
  kubectl slipstream missing alice -n teams | kubectl apply -f -`

// movable are the kinds in status.notCopied, with their resources.
var movable = map[string]schema.GroupVersionResource{
	"Role":                  rbacv1.SchemeGroupVersion.WithResource("roles"),
	"RoleBinding":           rbacv1.SchemeGroupVersion.WithResource("rolebindings"),
	"ClusterRoleBinding":    rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"),
	"PersistentVolumeClaim": corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"),
}

// missing is the command missing.
type missing struct {
	genericiooptions.IOStreams
	config genericclioptions.RESTClientGetter
}

func newMissing(streams genericiooptions.IOStreams, config genericclioptions.RESTClientGetter) *cobra.Command {
	m := &missing{IOStreams: streams, config: config}
	return &cobra.Command{
		Use:   "missing ENVIRONMENT",
		Short: "Print the RBAC objects and volume claims that an Environment needs and the server does not copy",
		Long: "Print the Roles, RoleBindings, ClusterRoleBindings and PersistentVolumeClaims that workloads of an Environment use in the\n" +
			"source and lack in the target, as YAML for kubectl apply. They are read in the source with your rights. The server creates none\n" +
			"of them: you need the permissions to apply them, and to grant their rights. What the target has by now under the same name is\n" +
			"not printed, and a binding keeps the subjects that it has.",
		Example: missingExample,
		Args:    cobra.ExactArgs(1),
		RunE:    func(command *cobra.Command, args []string) error { return m.run(command.Context(), args[0]) },
	}
}

func (m *missing) run(ctx context.Context, argument string) error {
	_, name, err := cli.ParseName(argument, cli.Environment)
	if err != nil {
		return err
	}
	namespace, _, err := m.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	api, err := cli.Connect(m.config)
	if err != nil {
		return err
	}
	environment, err := api.Environments(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if apimeta.FindStatusCondition(environment.Status.Conditions, v1alpha1.ConditionObjectsMissing) == nil {
		return fmt.Errorf("what Environment %s lacks is not known yet: its catalog has not been compared with %s",
			name, environment.Spec.TargetNamespace)
	}
	source := environment.Spec.CatalogRef.NamespacedName(namespace)
	catalog, err := api.AppCatalogs(source.Namespace).Get(ctx, source.Name, metav1.GetOptions{})
	if err != nil {
		return cli.Sought(err, "", source.Namespace) // The environment names it.
	}
	marks, err := marksOf(ctx, api.SyncPolicies())
	if err != nil {
		return err
	}
	target := objectcopy.Target{Namespace: environment.Spec.TargetNamespace, Marks: marks}
	objects, err := m.moved(ctx, environment, target, catalog.Spec.SourceNamespace)
	if err != nil {
		return err
	}
	printer := &printers.YAMLPrinter{}
	for _, object := range objects {
		if err := printer.PrintObj(object, m.Out); err != nil {
			return err
		}
	}
	return nil
}

// marksOf returns the default ownership marks, and those of the SyncPolicy if the user is allowed to read it.
func marksOf(ctx context.Context, policies client.SyncPolicyInterface) (objectcopy.Marks, error) {
	marks := objectcopy.DefaultMarks()
	policy, err := policies.Get(ctx, v1alpha1.SyncPolicyName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return marks, nil
	}
	if err != nil {
		return marks, err
	}
	more, err := objectcopy.ParseMarks(policy.Spec.TrackingMarks...)
	if err != nil {
		return marks, fmt.Errorf("spec.trackingMarks of the SyncPolicy: %w", err)
	}
	return marks.And(more), nil
}

// moved returns the objects that an environment lacks, as they would be in its target. If one of them cannot be read,
// it returns none, because the output is applied as a whole.
func (m *missing) moved(
	ctx context.Context, e *v1alpha1.Environment, target objectcopy.Target, source string,
) ([]*unstructured.Unstructured, error) {
	config, err := m.config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	objectsOf, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, lacking := range e.Status.NotCopied {
		resource, known := movable[lacking.Kind]
		switch {
		case lacking.Reason == v1alpha1.NotCopiedUnreadable:
			m.note("The server may not list %ss: whether the environment lacks any is not known", lacking.Kind)
			continue
		case !known:
			m.note("%s %s is of a kind that this version does not know", lacking.Kind, lacking.Name)
			continue
		}
		from := source
		if lacking.Kind == "ClusterRoleBinding" {
			from = metav1.NamespaceAll
		}
		object, err := objectsOf.Resource(resource).Namespace(from).Get(ctx, lacking.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			m.note("%s %s does not exist any more where the environment is made from", lacking.Kind, lacking.Name)
			continue
		}
		if err != nil {
			return nil, err
		}
		moved, err := target.Move(object, source, lacking.ServiceAccounts)
		if err != nil {
			return nil, err
		}
		isLacking, err := m.beside(ctx, objectsOf.Resource(resource).Namespace(moved.GetNamespace()), moved)
		if err != nil {
			return nil, err
		}
		if isLacking {
			objects = append(objects, moved)
		}
	}
	if len(e.Status.NotCopied) == 0 {
		m.note("%s lacks nothing that the server does not copy", target.Namespace)
	}
	return objects, nil
}

// beside reports whether an object is to be applied without loss of an existing object of its name. A binding keeps its
// current subjects; any other object is left unchanged.
func (m *missing) beside(ctx context.Context, in dynamic.ResourceInterface, moved *unstructured.Unstructured) (bool, error) {
	there, err := in.Get(ctx, moved.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	has, _, _ := unstructured.NestedSlice(there.Object, "subjects")
	wanted, _, _ := unstructured.NestedSlice(moved.Object, "subjects")
	all := slices.Clone(has)
	for _, subject := range wanted {
		if !slices.ContainsFunc(has, func(other any) bool { return equality.Semantic.DeepEqual(other, subject) }) {
			all = append(all, subject)
		}
	}
	if len(all) == len(has) {
		m.note("%s %s is there by now, and is left as it is", moved.GetKind(), moved.GetName())
		return false, nil
	}
	return true, unstructured.SetNestedSlice(moved.Object, all, "subjects")
}

// note prints a line that is not for kubectl apply.
func (m *missing) note(format string, args ...any) {
	_, _ = fmt.Fprintln(m.ErrOut, printable.Line(fmt.Sprintf(format, args...))) // Nothing depends on it.
}
