// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/environment/syncer/copies"
	typed "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/objectcopy"
	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// StateReader reads the state that a sync starts from. It is safe for concurrent use.
type StateReader struct {
	// Slipstream reads the kinds of this server. Client, Metadata and Mapper read all other kinds.
	Slipstream typed.ConfigbutlerV1alpha1Interface
	Client     dynamic.Interface
	Metadata   metadata.Interface
	Mapper     watch.KindMapper
	// Limiter limits the requests for objects of the source and the target.
	Limiter flowcontrol.RateLimiter
	// Concurrency is the maximum number of these requests that one plan has in flight, at least 1.
	Concurrency int

	// Planner returns which objects a plan needs. The Syncer plans with it, too.
	Planner   plan.Planner
	Copies    *copies.Copies
	Revisions Revisions
	// Rights checks the permissions of catalog editors, who consent to what is copied, and of requesters.
	Rights access.Reviewer
	Clock  clock.PassiveClock

	shared sharedReads
}

// Revisions returns the content of catalog revisions.
type Revisions interface {
	// Offered returns the workloads of a catalog revision; nil if the revision is not stored.
	Offered(
		ctx context.Context, catalog types.UID, revision int64,
	) (map[v1alpha1.WorkloadReference]*v1alpha1.CatalogWorkloadRecord, error)
	// Taken returns the latest revision, up to the given one, that was taken from the source: the given one, unless it is a rollback;
	// 0 if the given one is not stored.
	Taken(ctx context.Context, catalog types.UID, revision int64) (int64, error)
}

// Read reads the state that a sync for the request starts from.
func (r *StateReader) Read(ctx context.Context, request Request) (plan.Input, error) {
	reading := &stateReading{reader: r, request: request, since: request.Since, state: &plan.Input{
		Environment: request.Environment, Action: request.Action, Only: request.Only, Force: request.Force, Resolution: request.Resolution,
		Now: metav1.NewTime(r.Clock.Now()), DeniedObjects: map[plan.Key]plan.Denial{},
		CopyCache: &plan.CopyCache{},
	}}
	if reading.since == 0 {
		reading.since = r.shared.now()
	}
	if err := reading.read(ctx, request.Revision); err != nil {
		return plan.Input{}, fmt.Errorf("read what environment %s/%s is made of: %w",
			request.Environment.Namespace, request.Environment.Name, err)
	}
	return *reading.state, nil
}

// stateReading is one state while it is being read.
type stateReading struct {
	reader  *StateReader
	state   *plan.Input
	request Request
	// since is the moment after which what the environment has in common with others was read.
	since Moment
	// versions are the API versions in which objects of the target are read: those of the desired workloads and of what was applied.
	versions map[plan.Key]string
}

func (r *stateReading) read(ctx context.Context, revision int64) error {
	catalog, err := r.catalog(ctx)
	if err != nil {
		return err
	}
	r.state.SourceNamespace, r.state.Revision = catalog.Spec.SourceNamespace, cmp.Or(revision, catalog.Status.Revision)
	if r.state.Denied, err = r.reader.Withheld(ctx, catalog); err != nil {
		return err
	}
	if r.state.Marks, err = r.marks(ctx); err != nil {
		return err
	}
	if err := r.records(ctx); err != nil {
		return err
	}
	if err := r.checkRequester(ctx, catalog); err != nil {
		return err
	}
	if err := r.wanted(ctx, catalog, revision); err != nil {
		return err
	}
	if err := r.checkConsent(ctx, catalog); err != nil {
		return err
	}
	if err := r.checkCatalog(catalog); err != nil {
		return err
	}
	if err := r.before(ctx, catalog); err != nil {
		return err
	}
	if err := r.base(ctx); err != nil {
		return err
	}
	if err := r.included(ctx, catalog); err != nil {
		return err
	}
	return r.objects(ctx)
}

// marks reads the tracking marks of other tools from the SyncPolicy.
func (r *stateReading) marks(ctx context.Context) (objectcopy.Marks, error) {
	return shared(ctx, &r.reader.shared, r.since, "marks", r.readMarks)
}

func (r *stateReading) readMarks(ctx context.Context) (objectcopy.Marks, error) {
	policy, err := r.reader.Slipstream.SyncPolicies().Get(ctx, v1alpha1.SyncPolicyName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return objectcopy.Marks{}, nil
	}
	if err != nil {
		return objectcopy.Marks{}, fmt.Errorf("read the SyncPolicy: %w", err)
	}
	return objectcopy.ParseMarks(policy.Spec.TrackingMarks...)
}

// wanted reads the desired objects: those that were applied for the requested revision, or else the workloads of the catalog.
func (r *stateReading) wanted(ctx context.Context, catalog *v1alpha1.AppCatalog, revision int64) (err error) {
	known := false
	if revision != 0 && r.state.Action != v1alpha1.SyncActionCluster {
		r.state.Snapshot, known, err = r.reader.Copies.At(ctx, r.state.Environment.UID, revision)
	}
	if err == nil && !known {
		r.state.Workloads, err = r.offered(ctx, catalog)
	}
	r.versions = map[plan.Key]string{}
	for _, object := range slices.Concat(r.state.Workloads, r.state.Snapshot) {
		r.versions[plan.KeyOf(object)] = object.GroupVersionKind().Version
	}
	return err
}

// base reads the last applied objects.
func (r *stateReading) base(ctx context.Context) error {
	applied, _, err := r.reader.Copies.List(ctx, r.state.Environment.UID)
	r.state.Base = make(map[plan.Key]*unstructured.Unstructured, len(applied))
	for _, object := range applied {
		key := plan.KeyOf(object)
		r.state.Base[key] = object
		if _, known := r.versions[key]; !known && plan.IsOnlyIncluded(key.GroupKind) {
			r.versions[key] = object.GroupVersionKind().Version
		}
	}
	return err
}
