// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/scheme"
	"github.com/configbutler/slipstream/pkg/kube/restore"
)

const restoreExample = `  # Look at what a Deployment would get back from yesterday
  kubectl slipstream restore deployment/web -n shop --to 24h --dry-run

  # Set all mirrored objects of the namespace shop back to what they were after a commit, and delete what came since
  kubectl slipstream restore -n shop --to 8548a58 --prune`

// restoration is the command restore.
type restoration struct {
	rewrite
	to, labels string
	prune      bool
}

func newRestore(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	r := &restoration{rewrite: rewrite{
		session: session{IOStreams: streams, config: config}, output: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme),
	}}
	command := &cobra.Command{
		Use:   "restore [TYPE | TYPE/NAME...] --to T",
		Short: "Set objects back to what they were, with your own rights, after a preview",
		Long: "Set objects, those of a type, or all mirrored ones of the namespace, back to what they were. T is a time, a time ago such as 24h,\n" +
			"a commit, or the name of a Change; with ^ after a commit or Change, the state before it.\n\n" +
			"You see each field as it was, as it is, and as it will be, and are asked. Then the objects are written with your own rights:\n" +
			"fields that came since are removed, and what the cluster maintains stays, such as the status or the address of a Service, and\n" +
			"so do fields that the GitDestination ignores. An object that changes after the preview is left as it is. Objects that the API\n" +
			"server refuses to change are named and left as they are; the exit code is then 3.",
		Example: restoreExample,
		RunE:    func(command *cobra.Command, args []string) error { return r.run(command.Context(), args) },
	}
	flags := command.Flags()
	flags.StringVar(&r.to, "to", "", "The state to set back to. Required.")
	flags.StringVarP(&r.labels, "selector", "l", "", "Restore only objects that had labels, such as app=web.")
	flags.BoolVar(&r.prune, "prune", false, "Delete mirrored objects of the namespace that came since.")
	r.addFlags(command)
	r.addDestinationFlag(command)
	return command
}

func (r *restoration) run(ctx context.Context, args []string) error {
	switch {
	case r.to == "":
		return errors.New("--to is missing: it is a time, a time ago such as 24h, a commit, or the name of a Change")
	case r.prune && (len(args) > 0 || r.labels != ""):
		return errors.New("--prune is for a whole namespace: leave out types, names and --selector")
	}
	if err := r.prepare(); err != nil {
		return err
	}
	to, err := r.at("--to", r.to)
	if err != nil {
		return err
	}
	sel, err := r.selected(args, r.labels)
	if err != nil {
		return err
	}
	destination, err := r.destinationOf(ctx, sel, to)
	if err != nil {
		return err
	}
	then, err := r.read(ctx, destination, sel, to)
	if err != nil {
		return err
	}
	if err := r.checkFound(then); err != nil {
		return err
	}
	r.leaveUnread(then)
	objects, err := r.objects(ctx, destination, sel, then)
	if err != nil {
		return err
	}
	reason := fmt.Sprintf("restored to commit %s of %s", then.commit.SHA, then.commit.Time.UTC().Format(time.RFC3339))
	return r.rewrite.run(ctx, objects, reason)
}

// checkFound returns an error if a named object did not exist, or no object did.
func (r *restoration) checkFound(then *past) error {
	if len(then.missing) > 0 {
		return fmt.Errorf("%s did not exist in commit %s of %s: there is nothing to restore",
			then.missing[0], then.commit.SHA, then.commit.Time.UTC().Format(time.RFC3339))
	}
	if len(then.unreadable) > 0 && r.prune {
		return fmt.Errorf("in commit %s, %s is no object, so it is not known what came since: leave out --prune", then.commit.SHA, then.unreadable[0])
	}
	if len(then.all()) == 0 && !r.prune {
		return fmt.Errorf("commit %s of %s has no such object: there is nothing to restore",
			then.commit.SHA, then.commit.Time.UTC().Format(time.RFC3339))
	}
	return nil
}

// leaveUnread notes what cannot be restored because it cannot be read.
func (r *restoration) leaveUnread(then *past) {
	for _, secret := range then.masked {
		r.leave("Secret/"+secret.GetName(), fmt.Sprintf("its values cannot be read: %v", then.refused))
	}
	if then.omitted > 0 {
		r.leave(fmt.Sprintf("%d objects", then.omitted), "you may not read their types")
	}
	for _, file := range then.unreadable {
		r.leave(file, "it is no object")
	}
}

// objects returns what is to be restored or pruned, with the objects in the cluster.
func (r *restoration) objects(
	ctx context.Context, destination v1alpha1.NamespacedObjectReference, sel *selection, then *past,
) ([]compared, error) {
	present := map[objectKey]*unstructured.Unstructured{}
	if r.prune {
		state, err := r.read(ctx, destination, sel, "")
		if err != nil {
			return nil, err
		}
		for key, object := range state.all() {
			if _, omitted := then.masked[key]; !omitted {
				present[key] = object
			}
		}
	}
	if err := r.addNamespace(ctx, destination, sel, then); err != nil {
		return nil, err
	}
	definitions := definedBy(then.objects)
	var unserved []compared
	objects, err := r.withLive(ctx, then.objects, present, func(object *unstructured.Unstructured, err error) {
		if resource, ok := definitions[object.GroupVersionKind()]; ok {
			id := named(object)
			id.Resource = resource
			unserved = append(unserved, compared{Object: id, then: object})
			return
		}
		r.leave(object.GetKind()+"/"+object.GetName(), err.Error())
	})
	if err != nil {
		return nil, err
	}
	for i := range objects {
		objects[i].ignored = then.ignored
	}
	objects = slices.DeleteFunc(objects, func(o compared) bool { return o.then == nil && !r.came(&o, then) })
	return append(objects, unserved...), nil
}

// came reports whether an object is to be pruned: it came after a state, and exists.
func (r *restoration) came(o *compared, then *past) bool {
	switch {
	case o.live == nil:
		return false
	case metav1.GetControllerOf(o.live) != nil:
		r.note("%s is not deleted: %s/%s manages it", o.Object, metav1.GetControllerOf(o.live).Kind, metav1.GetControllerOf(o.live).Name)
		return false
	case o.live.GetCreationTimestamp().Unix() < then.commit.Time.Unix():
		r.note("%s is not deleted: it existed then, and was not mirrored", o.Object)
		return false
	}
	return true
}

// addNamespace adds the namespace to a state if it does not exist any more.
func (r *restoration) addNamespace(
	ctx context.Context, destination v1alpha1.NamespacedObjectReference, sel *selection, then *past,
) error {
	if sel.kind.clusterScoped || !slices.ContainsFunc(slices.Collect(maps.Keys(then.objects)), func(key objectKey) bool { return key.namespace != "" }) {
		return nil
	}
	namespace := restore.Object{
		Kind: corev1.SchemeGroupVersion.WithKind("Namespace"), Resource: corev1.SchemeGroupVersion.WithResource("namespaces"), Name: sel.namespace,
	}
	found, err := r.live(ctx, []restore.Object{namespace})
	switch {
	case err == nil && found[namespace] != nil && found[namespace].GetDeletionTimestamp() != nil:
		return fmt.Errorf("namespace %s is being deleted: run the command again when it is deleted", sel.namespace)
	case apierrors.IsForbidden(err) || found[namespace] != nil:
		return nil // A user who may not read the namespace can still have permissions in it.
	case err != nil:
		return err
	}
	of := objectRef{resource: corev1.Resource("namespaces"), name: sel.namespace, clusterScoped: true}
	state, err := r.read(ctx, destination, &selection{objects: []objectRef{of}}, then.commit.SHA)
	if err != nil {
		return err
	}
	for key, object := range state.objects {
		then.objects[key] = object
		return nil
	}
	return fmt.Errorf("namespace %s does not exist, and the commit does not have it: create it first", sel.namespace)
}

// definedBy returns the types that CustomResourceDefinitions of a state define.
func definedBy(objects map[objectKey]*unstructured.Unstructured) map[schema.GroupVersionKind]schema.GroupVersionResource {
	out := map[schema.GroupVersionKind]schema.GroupVersionResource{}
	for key, object := range objects {
		if key.kind != (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
			continue
		}
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		plural, _, _ := unstructured.NestedString(object.Object, "spec", "names", "plural")
		versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
		for _, version := range versions {
			fields, _ := version.(map[string]any)
			name, _ := fields["name"].(string)
			out[schema.GroupVersionKind{Group: group, Version: name, Kind: kind}] = schema.GroupVersionResource{
				Group: group, Version: name, Resource: plural,
			}
		}
	}
	return out
}
