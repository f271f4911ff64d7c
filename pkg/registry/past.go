// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Past reads objects as they were in Git.
type Past interface {
	// Diff returns what a Change changed, with the values of Secrets hidden. The user may get the object of the Change.
	Diff(ctx context.Context, change *v1alpha1.Change) (*v1alpha1.ChangeDiff, error)
	// Objects returns objects of a destination as they were, as far as the reader may read them. options.At names no Change.
	Objects(
		ctx context.Context, destination *v1alpha1.GitDestination, options *v1alpha1.ManifestOptions, reader *access.Reader,
	) (*v1alpha1.ManifestList, error)
}

// errNoPast is returned if this server does not read Git.
func errNoPast() error {
	return apierrors.NewServiceUnavailable("this server does not read what was mirrored")
}

// changeDiffREST is the read-only subresource diff of Changes.
type changeDiffREST struct {
	// changes returns the Changes that the user of a request may see: the user may get their objects.
	changes rest.Getter
	// past is nil if this server does not read Git.
	past Past
}

var (
	_ rest.Storage = &changeDiffREST{}
	_ rest.Scoper  = &changeDiffREST{}
	_ rest.Getter  = &changeDiffREST{}
)

// New returns an empty diff.
func (*changeDiffREST) New() runtime.Object { return &configbutler.ChangeDiff{} }

// Destroy does nothing: the main endpoint owns the storage.
func (*changeDiffREST) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (*changeDiffREST) NamespaceScoped() bool { return true }

// Get returns the contents before and after the Change with the given name.
func (r *changeDiffREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	found, err := r.changes.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	if r.past == nil {
		return nil, errNoPast()
	}
	change, err := versionedChange(found)
	if err != nil {
		return nil, err
	}
	shown, err := r.past.Diff(ctx, change)
	if err != nil {
		return nil, err
	}
	out := &configbutler.ChangeDiff{}
	if err := v1alpha1.Convert_v1alpha1_ChangeDiff_To_configbutler_ChangeDiff(shown, out, nil); err != nil {
		return nil, fmt.Errorf("converting the diff of Change %s: %w", name, err)
	}
	return out, nil
}

// versionedChange converts a Change to v1alpha1. The result shares data with the given Change.
func versionedChange(obj runtime.Object) (*v1alpha1.Change, error) {
	change, err := as[*configbutler.Change](obj)
	if err != nil {
		return nil, err
	}
	out := &v1alpha1.Change{}
	if err := v1alpha1.Convert_configbutler_Change_To_v1alpha1_Change(change, out, nil); err != nil {
		return nil, fmt.Errorf("converting Change %s/%s: %w", change.Namespace, change.Name, err)
	}
	return out, nil
}

// pastObjectsREST is the read-only subresource objects of GitDestinations: objects as they were.
type pastObjectsREST struct {
	destinations *genericregistry.Store
	// changes returns the Changes that the user of a request may see.
	changes rest.Getter
	// decides on permissions. Without it, no user sees any object.
	decides authorizer.Authorizer
	// past is nil if this server does not read Git.
	past Past
}

var (
	_ rest.Storage           = &pastObjectsREST{}
	_ rest.Scoper            = &pastObjectsREST{}
	_ rest.GetterWithOptions = &pastObjectsREST{}
)

// New returns an empty list.
func (*pastObjectsREST) New() runtime.Object { return &configbutler.ManifestList{} }

// Destroy does nothing: the main endpoint owns the storage.
func (*pastObjectsREST) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (*pastObjectsREST) NamespaceScoped() bool { return true }

// NewGetOptions implements rest.GetterWithOptions.
func (*pastObjectsREST) NewGetOptions() (options runtime.Object, subpath bool, subpathKey string) {
	return &configbutler.ManifestOptions{}, false, ""
}

// Get returns objects of the destination with the given name.
func (r *pastObjectsREST) Get(ctx context.Context, name string, options runtime.Object) (runtime.Object, error) {
	destination, err := r.destination(ctx, name)
	if err != nil {
		return nil, err
	}
	if r.past == nil {
		return nil, errNoPast()
	}
	versioned, err := versionedOptions(options)
	if err != nil {
		return nil, err
	}
	sender, _ := userOf(ctx)
	reader := access.NewReader(r.decides, sender)
	if versioned.At, err = r.commitOf(ctx, versioned.At, destination, reader); err != nil {
		return nil, err
	}
	if versioned.Secrets == v1alpha1.SecretsDecrypted {
		audit.AddAuditAnnotation(ctx, auditSecrets, versioned.Secrets)
	}
	shown, err := r.past.Objects(ctx, destination, versioned, reader)
	if err != nil {
		return nil, err
	}
	out := &configbutler.ManifestList{}
	if err := v1alpha1.Convert_v1alpha1_ManifestList_To_configbutler_ManifestList(shown, out, nil); err != nil {
		return nil, fmt.Errorf("converting objects: %w", err)
	}
	return out, nil
}

// auditSecrets is the annotation of the audit event of a request for readable Secrets of the past.
const auditSecrets = v1alpha1.GroupName + "/past-secrets"

// destination reads a GitDestination.
func (r *pastObjectsREST) destination(ctx context.Context, name string) (*v1alpha1.GitDestination, error) {
	stored, err := read[*configbutler.GitDestination](ctx, r.destinations, name)
	if err != nil {
		return nil, err
	}
	out := &v1alpha1.GitDestination{}
	if err := v1alpha1.Convert_configbutler_GitDestination_To_v1alpha1_GitDestination(stored.DeepCopy(), out, nil); err != nil {
		return nil, fmt.Errorf("converting GitDestination %s/%s: %w", stored.Namespace, stored.Name, err)
	}
	return out, nil
}

func versionedOptions(options runtime.Object) (*v1alpha1.ManifestOptions, error) {
	given, ok := options.(*configbutler.ManifestOptions)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the options are a %T", options))
	}
	out := &v1alpha1.ManifestOptions{}
	if err := v1alpha1.Convert_configbutler_ManifestOptions_To_v1alpha1_ManifestOptions(given, out, nil); err != nil {
		return nil, fmt.Errorf("converting the options: %w", err)
	}
	return out, nil
}

// commitOf returns the hash of the commit if a moment is the NAMESPACE/NAME of a Change, with the ^ that may follow, and any other moment
// as it is.
func (r *pastObjectsREST) commitOf(
	ctx context.Context, at string, destination *v1alpha1.GitDestination, reader *access.Reader,
) (string, error) {
	namespace, name, isChange := strings.Cut(at, "/")
	if !isChange {
		return at, nil
	}
	if len(at) > longestAt {
		return "", apierrors.NewBadRequest(fmt.Sprintf("at: longer than %d bytes", longestAt))
	}
	name, before := strings.CutSuffix(name, "^")
	change, err := r.change(ctx, namespace, name, reader)
	if err != nil {
		return "", err
	}
	for _, commit := range change.Spec.Commits {
		if of := commit.DestinationRef; of.Namespace == destination.Namespace && of.Name == destination.Name {
			if before {
				return commit.SHA + "^", nil
			}
			return commit.SHA, nil
		}
	}
	return "", apierrors.NewBadRequest(fmt.Sprintf("at: Change %s/%s has no commit of GitDestination %s/%s",
		namespace, name, destination.Namespace, destination.Name))
}

// longestAt bounds the namespace and name of a Change, in bytes.
const longestAt = 512

// errNoChange is the reason why a Change cannot be named. It is the same for one that does not exist.
var errNoChange = errors.New("it does not exist, or you may not get it or its object")

// change returns a Change that the user may get.
func (r *pastObjectsREST) change(ctx context.Context, namespace, name string, reader *access.Reader) (*v1alpha1.Change, error) {
	allowed, err := reader.May(ctx, "get", v1alpha1.Resource("changes"), namespace, name)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if allowed {
		var found runtime.Object
		found, err = r.changes.Get(genericapirequest.WithNamespace(ctx, namespace), name, &metav1.GetOptions{})
		if err == nil {
			return versionedChange(found)
		}
		if !apierrors.IsNotFound(err) && !apierrors.IsBadRequest(err) {
			return nil, err
		}
	}
	return nil, apierrors.NewBadRequest(fmt.Sprintf("at: Change %s/%s: %v", namespace, name, errNoChange))
}
