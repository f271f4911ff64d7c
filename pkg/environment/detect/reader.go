// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// maxSingleReads is the number of objects of a batch that are read one by one. For more, the namespace is listed, 500
// objects per request.
const maxSingleReads = 100

// finding is a version of an object that differs from the known version of some copy.
type finding struct {
	of      index.Object
	version string
	// object is the object without its content, nil if it does not exist.
	object *unstructured.Unstructured
}

// reader reads the current versions of source objects.
type reader struct {
	client dynamic.Interface
	lister *watch.Lister
	hasher plan.Hasher
	index  *index.Index
}

// version returns the version of an object.
func (r *reader) version(object *unstructured.Unstructured) (string, error) {
	return plan.Hash(r.hasher, object)
}

// read reads the objects of a batch, or all copied objects of the namespace if the batch requires that or is large.
func (r *reader) read(ctx context.Context, batch pending.Batch) ([]finding, error) {
	if batch.Resync || len(batch.Changes) > maxSingleReads {
		return r.readAll(ctx, batch.Namespace)
	}
	var found []finding
	for _, change := range batch.Changes {
		of := toIndexObject(change.Object)
		if copied, _ := r.index.Differs(of, ""); !copied {
			continue
		}
		object, err := r.client.Resource(resourceOf(of.Type)).Namespace(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			found = r.compare(found, of, v1alpha1.SeenRemoved, nil)
		case err != nil:
			return nil, fmt.Errorf("read the source: %s %s/%s: %w", of.Type, of.Namespace, of.Name, err)
		default:
			if found, err = r.compareObject(found, of, object); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// readAll reads all copied objects of a namespace.
func (r *reader) readAll(ctx context.Context, namespace string) (found []finding, err error) {
	for _, in := range r.index.Collections() {
		if in.Namespace != namespace {
			continue
		}
		if found, err = r.readCollection(ctx, in, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// readCollection adds the findings of a collection. Only objects that were in the index before the list can be concluded to
// be deleted.
func (r *reader) readCollection(ctx context.Context, in index.Collection, found []finding) ([]finding, error) {
	gone := sets.New(r.index.Objects(in)...)
	_, err := r.lister.List(ctx, watchOf(in), func(object *unstructured.Unstructured, _ string) (err error) {
		of := index.Object{Type: in.Type, Namespace: in.Namespace, Name: object.GetName()}
		gone.Delete(of)
		if copied, _ := r.index.Differs(of, ""); copied {
			found, err = r.compareObject(found, of, object)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the source: %w", err)
	}
	for of := range gone {
		found = r.compare(found, of, v1alpha1.SeenRemoved, nil)
	}
	return found, nil
}

func (r *reader) compareObject(found []finding, of index.Object, object *unstructured.Unstructured) ([]finding, error) {
	version, err := r.version(object)
	if err != nil {
		return nil, fmt.Errorf("read the source: %w", err)
	}
	return r.compare(found, of, version, withoutContent(object)), nil
}

// compare adds a finding if the version differs from the known version of some copy.
func (r *reader) compare(found []finding, of index.Object, version string, object *unstructured.Unstructured) []finding {
	if _, differs := r.index.Differs(of, version); differs {
		found = append(found, finding{of, version, object})
	}
	return found
}
