// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/ignorerules"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/scheme"
	"github.com/configbutler/slipstream/pkg/kube/ignore"
)

// objectKey identifies an object in any version of its type.
type objectKey struct {
	kind            schema.GroupKind
	namespace, name string
}

func keyOf(object *unstructured.Unstructured) objectKey {
	return objectKey{object.GroupVersionKind().GroupKind(), object.GetNamespace(), object.GetName()}
}

var secretKind = schema.GroupKind{Kind: "Secret"}

// past is a state of objects in Git.
type past struct {
	commit v1alpha1.ManifestCommit
	// objects have their values, also Secrets. masked are the Secrets whose values the user could not read, for the reason refused.
	objects, masked map[objectKey]*unstructured.Unstructured
	refused         error
	// omitted is the number of objects of types that the user may not read.
	omitted int
	// missing are the named objects that did not exist.
	missing []objectRef
	// unreadable are files that are no objects.
	unreadable []string
	// ignored are the fields that the destination does not mirror.
	ignored ignore.Rules
}

// read reads the state of a selection from a destination. Values of Secrets are asked for only if there are Secrets, and are masked if the
// server refuses.
func (s *session) read(
	ctx context.Context, from v1alpha1.NamespacedObjectReference, sel *selection, at string,
) (*past, error) {
	p := &past{objects: map[objectKey]*unstructured.Unstructured{}, masked: map[objectKey]*unstructured.Unstructured{}}
	queries := sel.queries()
	for i := range queries {
		queries[i].At = at
		left := p.omitted + len(p.unreadable)
		objects, err := s.readAll(ctx, from, &queries[i], p)
		if err != nil {
			return nil, err
		}
		if queries[i].Name != "" && len(objects) == 0 && sel.objects[i].unserved {
			if objects, err = s.readClusterScoped(ctx, from, queries[i], p); err != nil {
				return nil, err
			}
		}
		if queries[i].Name != "" && len(objects) == 0 && p.omitted+len(p.unreadable) == left {
			p.missing = append(p.missing, sel.objects[i])
		}
		at = p.commit.SHA // All of the state is that of one commit.
		for _, object := range objects {
			if key := keyOf(object); key.kind == secretKind {
				p.masked[key] = object
			} else {
				p.objects[key] = object
			}
		}
	}
	if len(p.masked) == 0 {
		return p, nil
	}
	return p, s.readSecrets(ctx, from, queries, p)
}

// readClusterScoped reads a named object of a type that is not served, if it has no namespace.
func (s *session) readClusterScoped(
	ctx context.Context, from v1alpha1.NamespacedObjectReference, query v1alpha1.ManifestOptions, p *past,
) ([]*unstructured.Unstructured, error) {
	query.Namespace, query.At = "", p.commit.SHA
	// What is left out is not counted: that can be objects of other namespaces.
	objects, err := s.readAll(ctx, from, &query, &past{})
	return slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool { return object.GetNamespace() != "" }), err
}

// readSecrets reads the Secrets of a state with their values.
func (s *session) readSecrets(
	ctx context.Context, from v1alpha1.NamespacedObjectReference, queries []v1alpha1.ManifestOptions, p *past,
) error {
	for i := range queries {
		query := queries[i]
		if query.Resource != "" && query.Resource != "secrets" {
			continue
		}
		query.Resource, query.Secrets, query.At = "secrets", v1alpha1.SecretsDecrypted, p.commit.SHA
		objects, err := s.readAll(ctx, from, &query, &past{})
		if err != nil {
			var status apierrors.APIStatus
			if !errors.As(err, &status) {
				return err
			}
			p.refused = err
			return nil
		}
		for _, object := range objects {
			delete(p.masked, keyOf(object))
			p.objects[keyOf(object)] = object
		}
	}
	if len(p.masked) > 0 {
		p.refused = errNotShown
	}
	return nil
}

// errNotShown is the reason for Secrets that a list of values leaves out. Only the response for a single one has the reason.
var errNotShown = errors.New("the server does not show them; name a single Secret to see why")

// readAll reads all pages of a query.
func (s *session) readAll(
	ctx context.Context, from v1alpha1.NamespacedObjectReference, query *v1alpha1.ManifestOptions, p *past,
) (objects []*unstructured.Unstructured, err error) {
	options := *query
	for {
		page, next, err := s.readPage(ctx, from, &options, p)
		if err != nil {
			return nil, err
		}
		objects = append(objects, page...)
		if options.Continue = next; next == "" {
			return objects, nil
		}
	}
}

// ignoredBy compiles the ignore rules of a destination.
func ignoredBy(rules []v1alpha1.IgnoreRule) (ignore.Rules, error) {
	compiled, err := ignorerules.Compile(rules)
	if err != nil {
		return compiled, fmt.Errorf("failed to read the ignore rules of the destination: %w", err)
	}
	return compiled, nil
}

// readPage reads a page of a query, and returns how it continues; empty if it was the last one.
func (s *session) readPage(
	ctx context.Context, from v1alpha1.NamespacedObjectReference, query *v1alpha1.ManifestOptions, p *past,
) (objects []*unstructured.Unstructured, next string, err error) {
	var page v1alpha1.ManifestList
	err = s.api.RESTClient().Get().Namespace(from.Namespace).Resource("gitdestinations").Name(from.Name).SubResource("objects").
		VersionedParams(query, scheme.ParameterCodec).Do(ctx).Into(&page)
	if err != nil {
		return nil, "", cli.Sought(err, "--destination", from.Namespace)
	}
	if page.Commit == nil {
		return nil, "", fmt.Errorf("GitDestination %s/%s has no commit yet", from.Namespace, from.Name)
	}
	p.commit = *page.Commit
	p.omitted += int(page.Omitted)
	p.unreadable = append(p.unreadable, page.Unreadable...)
	if p.ignored, err = ignoredBy(page.Ignore); err != nil {
		return nil, "", err
	}
	for i := range page.Items {
		object, err := decoded(&page.Items[i])
		if err != nil {
			return nil, "", err
		}
		objects = append(objects, contentOf(object))
	}
	return objects, page.Continue, nil
}

// decoded returns an object of a response, nil if there is none.
func decoded(raw *runtime.RawExtension) (*unstructured.Unstructured, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw.Raw); err != nil {
		return nil, fmt.Errorf("failed to read an object of the response: %w", err)
	}
	return object, nil
}

// decodedBoth returns the contents before and after a change, nil where the object did not exist.
func decodedBoth(difference *v1alpha1.ChangeDiff) (before, after *unstructured.Unstructured, err error) {
	if before, err = decoded(difference.Before); err != nil {
		return nil, nil, err
	}
	after, err = decoded(difference.After)
	return before, after, err
}

// warn says what is not in a state.
func (s *session) warn(p *past) {
	if p.omitted > 0 {
		s.note("%d objects are left out, because you may not read their types", p.omitted)
	}
	for _, file := range p.unreadable {
		s.note("%s is left out, because it is no object", file)
	}
}
