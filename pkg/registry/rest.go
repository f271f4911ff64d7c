// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/configbutler/slipstream/pkg/attribution"
)

// naming provides the short names and categories of a kind to discovery.
type naming struct{ shortNames []string }

var (
	_ rest.ShortNamesProvider = naming{}
	_ rest.CategoriesProvider = naming{}
)

// ShortNames implements rest.ShortNamesProvider.
func (n naming) ShortNames() []string { return n.shortNames }

// Categories implements rest.CategoriesProvider.
func (naming) Categories() []string { return []string{category} }

// objectREST is the main endpoint of a kind that users write.
type objectREST struct {
	*genericregistry.Store
	naming
}

var (
	_ rest.StandardStorage      = &objectREST{}
	_ rest.Patcher              = &objectREST{}
	_ rest.StorageWithReadiness = &objectREST{}
	_ rest.ShortNamesProvider   = &objectREST{}
)

// readAndDelete is what the API offers of a record. The API machinery derives the verbs of an endpoint from its
// methods, so methods that are not listed here cannot be requested.
type readAndDelete interface {
	rest.StorageWithReadiness
	rest.Scoper
	rest.SingularNameProvider
	rest.StorageVersionProvider
	rest.Getter
	rest.Lister
	rest.Watcher
	rest.GracefulDeleter
	rest.CollectionDeleter
}

// recordREST is the endpoint of a record.
type recordREST struct {
	readAndDelete
	naming
}

var _ rest.ShortNamesProvider = &recordREST{}

// statusREST is the status subresource of a kind that users write.
type statusREST struct{ store *genericregistry.Store }

var (
	_ rest.Storage             = &statusREST{}
	_ rest.Patcher             = &statusREST{}
	_ rest.ResetFieldsStrategy = &statusREST{}
	_ rest.TableConvertor      = &statusREST{}
)

// New returns an empty object to decode a request into.
func (r *statusREST) New() runtime.Object { return r.store.New() }

// Destroy does nothing: the main endpoint owns the storage.
func (*statusREST) Destroy() {}

// Get returns the whole object.
func (r *statusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// errServersStatus is returned to a user who writes a status.
var errServersStatus = errors.New(
	"a status is written by the server only: no right on the kind allows it; what users ask for is in the spec")

// Update updates the status of an existing object; unlike the main endpoint it never creates one, not even for
// server-side apply. Only the server's own controllers are allowed to: the status determines by whose permissions an
// object is processed, and whether a destination's Secrets are encrypted, so that no permission on the kind is
// sufficient.
func (r *statusREST) Update(
	ctx context.Context, name string, info rest.UpdatedObjectInfo,
	createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc,
	_ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	if sender, found := genericapirequest.UserFrom(ctx); !found || !attribution.IsAPIServer(sender) {
		return nil, false, apierrors.NewForbidden(r.store.DefaultQualifiedResource, name, errServersStatus)
	}
	return r.store.Update(ctx, name, info, createValidation, updateValidation, false, options)
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (r *statusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable returns the same table as the main endpoint.
func (r *statusREST) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, obj, options)
}
