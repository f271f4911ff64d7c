// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/sops"
)

// goneError is why a content cannot be read, for the caller. Trying again does not help.
type goneError struct{ text string }

func (e *goneError) Error() string { return e.text }

// Diff returns what a Change changed. The values of Secrets are hidden. The caller must have checked that the user may get the object of the
// Change. Of several commits it reads the first whose contents can be read.
func (p *Past) Diff(ctx context.Context, change *v1alpha1.Change) (*v1alpha1.ChangeDiff, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := p.diff(limited, change)
	var gone *goneError
	switch {
	case errors.As(err, &gone):
		return nil, apierrors.NewConflict(v1alpha1.Resource("changes"), change.Name, gone)
	case err != nil && errors.Is(limited.Err(), context.DeadlineExceeded) && ctx.Err() == nil:
		return nil, errTimeout()
	}
	return out, err
}

func (p *Past) diff(ctx context.Context, change *v1alpha1.Change) (*v1alpha1.ChangeDiff, error) {
	var failed error = &goneError{"it names no commit"}
	for i := range change.Spec.Commits {
		both, err := p.sides(ctx, change, &change.Spec.Commits[i])
		switch {
		case err == nil:
			return p.compare(ctx, change, i, both)
		case ctx.Err() != nil:
			return nil, err
		case i == 0:
			failed = err
		}
	}
	return nil, failed
}

// sides are the contents before and after a change; nil for none.
type sides struct{ before, after *unstructured.Unstructured }

// sides reads the contents before and after a commit.
func (p *Past) sides(ctx context.Context, change *v1alpha1.Change, commit *v1alpha1.ChangeCommit) (both sides, err error) {
	of := change.Spec.Object
	before, after := gitrepo.ParseHash(commit.BlobBefore), gitrepo.ParseHash(commit.BlobAfter)
	var blobs []gitrepo.Hash
	for _, hash := range []gitrepo.Hash{before, after} {
		if !hash.IsZero() {
			blobs = append(blobs, hash)
		}
	}
	contents, err := p.contentsOf(ctx, change, commit, blobs)
	if err != nil {
		return sides{}, err
	}
	if both.before, err = side(ctx, contents, before, of); err != nil {
		return sides{}, err
	}
	both.after, err = side(ctx, contents, after, of)
	return both, err
}

// side returns the object of a blob; nil for the zero hash. Anyone who can write the Change names blobs, so it must be the object of the
// Change, which the caller may get. Its kind is empty if only the file was known.
func side(
	ctx context.Context, contents map[gitrepo.Hash][]byte, hash gitrepo.Hash, of v1alpha1.ChangedObject,
) (*unstructured.Unstructured, error) {
	if hash.IsZero() {
		return nil, nil
	}
	object, err := decode(ctx, contents[hash])
	switch {
	case errors.Is(err, errUnreadable):
		return nil, &goneError{"a content of the file is no object"}
	case err != nil:
		return nil, err
	case object.GetAPIVersion() != of.APIVersion, of.Kind != "" && object.GetKind() != of.Kind, object.GetNamespace() != of.Namespace,
		object.GetName() != of.Name, isSecretKind(object) != isSecret(of):
		return nil, &goneError{"a content of the file is not the object of the Change"}
	}
	return object, nil
}

// contentsOf returns the contents of a commit of a Change by hash. All are there.
func (p *Past) contentsOf(
	ctx context.Context, change *v1alpha1.Change, commit *v1alpha1.ChangeCommit, blobs []gitrepo.Hash,
) (map[gitrepo.Hash][]byte, error) {
	contents := map[gitrepo.Hash][]byte{}
	for _, hash := range blobs {
		if content, ok := p.cached(hash); ok {
			contents[hash] = content
		}
	}
	if len(contents) == len(blobs) {
		return contents, nil
	}
	name := commit.DestinationRef
	destination, err := p.config.Client.ConfigbutlerV1alpha1().GitDestinations(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, &goneError{fmt.Sprintf(
			"the GitDestination %s/%s no longer exists, so its repository cannot be read", name.Namespace, name.Name)}
	}
	if err != nil {
		return nil, fmt.Errorf("read GitDestination %s/%s: %w", name.Namespace, name.Name, err)
	}
	err = p.run(ctx, change.Namespace, func(ctx context.Context) error {
		contents, err = p.fetchContents(ctx, destination, commit, blobs, isSecret(change.Spec.Object))
		return failure(ctx, destination, err)
	})
	return contents, err
}

// fetchContents returns the contents of a commit of a destination by hash, of which some may be cached.
func (p *Past) fetchContents(
	ctx context.Context, destination *v1alpha1.GitDestination, commit *v1alpha1.ChangeCommit, blobs []gitrepo.Hash, secret bool,
) (map[gitrepo.Hash][]byte, error) {
	source, err := p.open(ctx, destination)
	if err != nil {
		return nil, err
	}
	defer source.Remote.Close()
	at := folder{branch: branchOf(source), path: joined(blobs), commit: gitrepo.ParseHash(commit.SHA)}
	if err := p.gone.get(at); err != nil {
		return nil, err
	}
	read, err := p.contents(ctx, source, gitrepo.BlobsOptions{
		Past: gitrepo.Past{Branch: source.Branch, Commit: at.commit}, Parent: true, Whole: true,
	}, blobs, func(gitrepo.Hash) bool { return secret })
	if err == nil && slices.ContainsFunc(blobs, func(hash gitrepo.Hash) bool { return read.Found[hash] == nil }) {
		err = &goneError{fmt.Sprintf(
			"the repository of GitDestination %s/%s does not have the content, for example because history was rewritten",
			destination.Namespace, destination.Name)}
	}
	p.gone.put(at, err)
	return read.Found, err
}

// joined returns the text of hashes.
func joined(hashes []gitrepo.Hash) string {
	var text strings.Builder
	for _, hash := range hashes {
		text.WriteString(hash.String())
	}
	return text.String()
}

// compare returns the response for the contents of one of the commits.
func (p *Past) compare(ctx context.Context, change *v1alpha1.Change, commit int, both sides) (*v1alpha1.ChangeDiff, error) {
	out := &v1alpha1.ChangeDiff{
		ObjectMeta: metav1.ObjectMeta{Namespace: change.Namespace, Name: change.Name}, Object: change.Spec.Object,
	}
	var err error
	if out.Ignore, err = p.ignored(ctx, change.Spec.Commits[commit].DestinationRef, change.Spec.Object); err != nil {
		return nil, err
	}
	if isSecret(change.Spec.Object) {
		if out.Fields, both, err = p.compareSecrets(ctx, both); err != nil {
			return nil, err
		}
	} else if out.Fields, err = p.fields(ctx, both, nil); err != nil {
		return nil, err
	}
	if out.Before, err = raw(both.before); err != nil {
		return nil, err
	}
	out.After, err = raw(both.after)
	return out, err
}

// ignored returns the ignore rules of a destination for an object: the caller need not be allowed to read those for others. They are none if
// the destination does not exist.
func (p *Past) ignored(
	ctx context.Context, name v1alpha1.NamespacedObjectReference, object v1alpha1.ChangedObject,
) ([]v1alpha1.IgnoreRule, error) {
	destination, err := p.config.Client.ConfigbutlerV1alpha1().GitDestinations(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read GitDestination %s/%s: %w", name.Namespace, name.Name, err)
	}
	version, err := schema.ParseGroupVersion(object.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("read the type of the object: %w", err)
	}
	var out []v1alpha1.IgnoreRule
	for _, rule := range destination.Spec.Ignore {
		of := rule.Target
		if (of.Group == nil || *of.Group == version.Group) && (of.Kind == "" || of.Kind == object.Kind) && (of.Name == "" || of.Name == object.Name) {
			out = append(out, rule)
		}
	}
	return out, nil
}

// isSecret reports whether the values of an object are hidden.
func isSecret(object v1alpha1.ChangedObject) bool {
	version, err := schema.ParseGroupVersion(object.APIVersion)
	return err != nil || version.WithResource(object.Resource).GroupResource() == secrets
}

// isSecretKind reports whether an object is a Secret by its kind.
func isSecretKind(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Secret"}
}

// compareSecrets returns the fields that differ between two Secrets, without values, and the masked Secrets.
func (p *Past) compareSecrets(ctx context.Context, both sides) ([]v1alpha1.FieldDifference, sides, error) {
	open := opener{past: p}
	var shown sides
	opened, known := both, true
	for _, of := range []struct{ given, opened, shown **unstructured.Unstructured }{
		{&both.before, &opened.before, &shown.before}, {&both.after, &opened.after, &shown.after},
	} {
		if *of.given == nil {
			continue
		}
		var err error
		*of.opened, err = open.open(ctx, *of.given)
		switch {
		case err == nil:
			*of.shown = masked(*of.opened, maskLength)
		case isSealed(err):
			known = false
			*of.shown = masked(*of.given, sealedMask(err))
		default:
			return nil, sides{}, &goneError{"a content of the file is no intact Secret"}
		}
	}
	if known {
		fields, err := p.fields(ctx, opened, coveredBy(opened))
		return fields, shown, err
	}
	// Encryption changes all values with each of them, so only the keys can be compared.
	fields, err := p.fields(ctx, shown, coveredBy(shown))
	if err == nil && both.before != nil && both.after != nil {
		fields = append(fields, v1alpha1.FieldDifference{Field: "/data", ChangeType: v1alpha1.ChangeChanged, Hidden: true})
	}
	return fields, shown, err
}

// coveredBy returns a function that reports whether the values at a path are hidden in one of the Secrets.
func coveredBy(both sides) func(fieldpath.Path) bool {
	return func(path fieldpath.Path) bool {
		var keys []string
		for _, step := range path {
			if step.IsField() {
				keys = append(keys, step.Field)
			}
		}
		for _, secret := range []*unstructured.Unstructured{both.before, both.after} {
			if secret != nil && sops.Covered(secret.Object)(keys) {
				return true
			}
		}
		return false
	}
}

// fields returns the fields that differ, none if one of the objects is missing. hidden reports whether values are not shown; nil shows all.
func (p *Past) fields(ctx context.Context, both sides, hidden func(fieldpath.Path) bool) ([]v1alpha1.FieldDifference, error) {
	if both.before == nil || both.after == nil {
		return nil, nil
	}
	differences, err := p.config.Schemas.Compare(ctx, both.before, both.after)
	if err != nil {
		return nil, fmt.Errorf("compare the contents before and after: %w", err)
	}
	fields := make([]v1alpha1.FieldDifference, len(differences))
	for i, difference := range differences {
		fields[i] = fieldOf(difference, both, hidden != nil && hidden(difference.Path))
	}
	return fields, nil
}

func fieldOf(difference diff.Difference, both sides, hidden bool) v1alpha1.FieldDifference {
	field := v1alpha1.FieldDifference{
		Field: difference.Path.String(), ChangeType: v1alpha1.ChangeType(difference.Change), Hidden: hidden,
	}
	if !hidden {
		field.Before, field.After = difference.ValueIn(both.before), difference.ValueIn(both.after)
	}
	return field
}

// raw returns an object as JSON; nil for none.
func raw(object *unstructured.Unstructured) (*runtime.RawExtension, error) {
	if object == nil {
		return nil, nil
	}
	text, err := object.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("write an object: %w", err)
	}
	return &runtime.RawExtension{Raw: text}, nil
}
