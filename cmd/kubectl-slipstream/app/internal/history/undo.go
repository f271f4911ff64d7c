// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
	"github.com/configbutler/slipstream/pkg/kube/ignore"
	"github.com/configbutler/slipstream/pkg/kube/restore"
)

const undoExample = `  # Undo one change, and keep what has changed since in other fields
  kubectl slipstream undo fe5de7ac1a38-fe2f91dc2d98 -n shop`

// undo is the command undo.
type undo struct{ rewrite }

func newUndo(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	u := &undo{rewrite{
		session: session{IOStreams: streams, config: config}, output: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme),
	}}
	command := &cobra.Command{
		Use:   "undo CHANGE",
		Short: "Set back the fields that one change has changed",
		Long: "Set back the fields that one change has changed, with your own rights. Later changes of other fields stay. A field that has\n" +
			"changed again since is a conflict: then nothing is written, and the exit code is 4. The creation of an object is undone by its\n" +
			"deletion, and a deletion by its creation. CHANGE is the name of a Change of the namespace, NAMESPACE/NAME, or a commit.",
		Example: undoExample,
		Args:    cobra.ExactArgs(1),
		RunE:    func(command *cobra.Command, args []string) error { return u.run(command.Context(), args[0]) },
	}
	u.addFlags(command)
	return command
}

func (u *undo) run(ctx context.Context, argument string) error {
	if err := u.prepare(); err != nil {
		return err
	}
	change, err := u.change(ctx, argument)
	if err != nil {
		return err
	}
	both, err := u.contents(ctx, change)
	if err != nil {
		return err
	}
	object, err := u.current(ctx, both)
	if err != nil {
		return err
	}
	undone, err := both.undone(ctx, u.schemas, object)
	if err != nil {
		return err
	}
	if len(undone.Conflicts) > 0 {
		return u.conflict(ctx, change, undone.Conflicts)
	}
	object.then, object.edited = undone.Content, true
	return u.rewrite.run(ctx, []compared{*object}, "undo of change "+change.Name)
}

// changed has the contents before and after a change, nil where the object did not exist. Ignored are fields that they lack.
type changed struct {
	before, after *unstructured.Unstructured
	ignored       ignore.Rules
}

// current returns the object of a change with its content in the cluster.
func (u *undo) current(ctx context.Context, both changed) (*compared, error) {
	sample := both.after
	if sample == nil {
		sample = both.before
	}
	if sample == nil {
		return nil, errors.New("the Change has no content before or after it")
	}
	id, err := u.identify(sample)
	if err != nil {
		return nil, err
	}
	found, err := u.live(ctx, []restore.Object{id})
	if err != nil {
		return nil, err
	}
	object := &compared{Object: id, live: found[id], ignored: both.ignored}
	if object.live != nil {
		object.now, err = planner.Content(object.live)
	}
	return object, err
}

// undone returns an object without the change. Ignored fields stay as they are in the cluster.
func (c changed) undone(ctx context.Context, schemas *diff.Schemas, object *compared) (restore.Undone, error) {
	before, err := restore.WithIgnored(c.ignored, object.live, c.before)
	if err != nil {
		return restore.Undone{}, err
	}
	after, err := restore.WithIgnored(c.ignored, object.live, c.after)
	if err != nil {
		return restore.Undone{}, err
	}
	return restore.Undo(ctx, schemas, before, after, object.now)
}

// contents returns the contents before and after a change.
func (u *undo) contents(ctx context.Context, change *v1alpha1.Change) (both changed, err error) {
	if change.Spec.Object.Resource == "secrets" && change.Spec.Object.APIVersion == "v1" {
		return u.secrets(ctx, change)
	}
	difference, err := u.api.Changes(change.Namespace).Diff(ctx, change.Name, metav1.GetOptions{})
	if err != nil {
		return both, err
	}
	if both.ignored, err = ignoredBy(difference.Ignore); err != nil {
		return both, err
	}
	before, after, err := decodedBoth(difference)
	both.before, both.after = contentOf(before), contentOf(after)
	return both, err
}

// secrets returns the contents of a Secret with its values.
func (u *undo) secrets(ctx context.Context, change *v1alpha1.Change) (both changed, err error) {
	if len(change.Spec.Commits) == 0 {
		return both, errors.New("the Change has no commit")
	}
	commit := change.Spec.Commits[0]
	if commit.BlobBefore != "" {
		if both.before, both.ignored, err = u.secret(ctx, change, "^"); err != nil {
			return both, err
		}
	}
	if commit.BlobAfter != "" {
		both.after, both.ignored, err = u.secret(ctx, change, "")
	}
	return both, err
}

// secret returns a Secret with its values as it was after a change, or before it if the suffix is ^, and the fields that it lacks.
func (u *undo) secret(ctx context.Context, change *v1alpha1.Change, suffix string) (*unstructured.Unstructured, ignore.Rules, error) {
	of := objectRef{resource: corev1.Resource("secrets"), name: change.Spec.Object.Name}
	sel := &selection{namespace: change.Spec.Object.Namespace, objects: []objectRef{of}}
	from := change.Spec.Commits[0]
	state, err := u.read(ctx, from.DestinationRef, sel, change.Namespace+"/"+change.Name+suffix)
	if err != nil {
		return nil, ignore.Rules{}, err
	}
	if state.refused != nil {
		return nil, ignore.Rules{}, fmt.Errorf("the values of the Secret cannot be read: %w", state.refused)
	}
	for _, secret := range state.objects {
		return secret, state.ignored, nil
	}
	return nil, ignore.Rules{}, fmt.Errorf("the Secret is not in the commit %s%s", from.SHA, suffix)
}

// maxConflictChanges is the number of Changes among which those are looked for that have changed a field again.
const maxConflictChanges = 200

// conflict returns the error for fields that have changed since a change, with the later changes.
func (u *undo) conflict(ctx context.Context, change *v1alpha1.Change, conflicts []fieldpath.Path) error {
	object := change.Spec.Object
	version, err := schema.ParseGroupVersion(object.APIVersion)
	if err != nil {
		return err
	}
	of := objectRef{resource: version.WithResource(object.Resource).GroupResource(), name: object.Name, clusterScoped: object.Namespace == ""}
	u.namespace = change.Namespace
	later, err := u.history(ctx, of, maxConflictChanges)
	if err != nil {
		return err
	}
	for i := range later {
		if later[i].Name == change.Name && later[i].Namespace == change.Namespace {
			later = later[:i]
			break
		}
	}
	var lines []string
	for _, path := range conflicts {
		lines = append(lines, what(path)+" has changed again: "+by(later, path))
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 409, Reason: metav1.StatusReasonConflict,
		Message: fmt.Sprintf("change %s of %s cannot be undone:\n  %s", change.Name, whatOf(change), strings.Join(lines, "\n  ")),
	}}
}

func what(path fieldpath.Path) string {
	if len(path) == 0 {
		return "the object"
	}
	return path.String()
}

// by names the latest of some changes, newest first, that has changed a field, or may have.
func by(later []v1alpha1.Change, path fieldpath.Path) string {
	for _, touches := range []func(*v1alpha1.Change, fieldpath.Path) bool{touches, mayTouch} {
		for i := range later {
			if touches(&later[i], path) {
				return fmt.Sprintf("change %s by %s", later[i].Name, whoOf(&later[i]))
			}
		}
	}
	return "no Change of that is recorded yet"
}

// touches reports whether a change names a field, a part of it, or what contains it, or perhaps does. Changes identify list items by their
// names, and conflicts by the keys of the schema: /spec/ports[name=http] can be /spec/ports[port=80,protocol=TCP].
func touches(change *v1alpha1.Change, path fieldpath.Path) bool {
	return slices.ContainsFunc(change.Spec.Fields, func(text string) bool {
		field, err := fieldpath.Parse(text)
		return err == nil && mayOverlap(field, path)
	})
}

// mayOverlap reports whether one path may lead to what the other one leads to, or below it. Items with different keys may be the same.
func mayOverlap(a, b fieldpath.Path) bool {
	for i := range min(len(a), len(b)) {
		switch {
		case !a[i].IsField() && !b[i].IsField() && !haveSameKeys(a[i], b[i]):
			return true
		case !a[i].Equal(b[i]):
			return false
		}
	}
	return true
}

// haveSameKeys reports whether two steps identify items in the same way.
func haveSameKeys(a, b fieldpath.Step) bool {
	return a.IsValue == b.IsValue && slices.EqualFunc(a.Keys, b.Keys, func(a, b fieldpath.Key) bool { return a.Name == b.Name })
}

// mayTouch reports whether a change has changed fields that it does not name.
func mayTouch(change *v1alpha1.Change, path fieldpath.Path) bool {
	return len(path) == 0 || len(change.Spec.Fields) == 0 || change.Spec.MoreFields > 0
}
