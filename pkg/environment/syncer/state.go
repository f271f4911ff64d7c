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

// StateReader reads situations. It may be used concurrently.
type StateReader struct {
	// Slipstream reads our own kinds; Client, Metadata and Mapper, the others.
	Slipstream typed.ConfigbutlerV1alpha1Interface
	Client     dynamic.Interface
	Metadata   metadata.Interface
	Mapper     watch.KindMapper
	// Limiter is waited for before each request for objects of the source and the target.
	Limiter flowcontrol.RateLimiter
	// Concurrency is how many of these requests are made at once, at least 1.
	Concurrency int

	// Planner is the one that makes the plans.
	Planner   plan.Planner
	Copies    *copies.Copies
	Revisions Revisions
	// Rights are those of the editors of catalogs, who consent to what is copied.
	Rights AccessReviewer
	Clock  clock.PassiveClock
}

// Revisions are what catalogs offered with their revisions.
type Revisions interface {
	// Offered returns what a catalog offered with a revision, by workload; nil if that is not kept.
	Offered(
		ctx context.Context, catalog types.UID, revision int64,
	) (map[v1alpha1.WorkloadReference]*v1alpha1.CatalogWorkloadRecord, error)
}

// Read reads the situation that a request meets.
func (g *StateReader) Read(ctx context.Context, request Request) (plan.Input, error) {
	r := &reading{StateReader: g, requester: request.Requester, Input: &plan.Input{
		Environment: request.Environment, Action: request.Action, Only: request.Only, Force: request.Force, Resolution: request.Resolution,
		Now: metav1.NewTime(g.Clock.Now()), DeniedObjects: map[plan.Key]plan.Denial{},
	}}
	if err := r.read(ctx, request.Revision); err != nil {
		return plan.Input{}, fmt.Errorf("read what environment %s/%s is made of: %w",
			request.Environment.Namespace, request.Environment.Name, err)
	}
	return *r.Input, nil
}

// reading is a situation that is being read.
type reading struct {
	*StateReader
	*plan.Input
	requester *access.Holder
	// versions are those of what is read in the target as it is wanted: workloads, and what was applied.
	versions map[plan.Key]string
}

func (r *reading) read(ctx context.Context, revision int64) error {
	catalog, err := r.catalog(ctx)
	if err != nil {
		return err
	}
	r.SourceNamespace, r.Revision = catalog.Spec.SourceNamespace, cmp.Or(revision, catalog.Status.Revision)
	if r.Input.Denied, err = r.StateReader.Withheld(ctx, catalog); err != nil {
		return err
	}
	if r.Marks, err = r.marks(ctx); err != nil {
		return err
	}
	if err := r.records(ctx); err != nil {
		return err
	}
	if err := r.askRequester(ctx, catalog); err != nil {
		return err
	}
	if err := r.wanted(ctx, catalog, revision); err != nil {
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

// marks reads the marks of tools that the SyncPolicy names.
func (r *reading) marks(ctx context.Context) (objectcopy.Marks, error) {
	policy, err := r.Slipstream.SyncPolicies().Get(ctx, v1alpha1.SyncPolicyName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return objectcopy.Marks{}, nil
	}
	if err != nil {
		return objectcopy.Marks{}, fmt.Errorf("read the SyncPolicy: %w", err)
	}
	return objectcopy.ParseMarks(policy.Spec.TrackingMarks...)
}

// wanted reads what the environment is to have: what it had with the revision that is asked for, or what the catalog offers.
func (r *reading) wanted(ctx context.Context, catalog *v1alpha1.AppCatalog, revision int64) (err error) {
	known := false
	if revision != 0 && r.Action != v1alpha1.SyncActionCluster {
		r.Snapshot, known, err = r.Copies.At(ctx, r.Environment.UID, revision)
	}
	if err == nil && !known {
		r.Workloads, err = r.offered(ctx, catalog)
	}
	r.versions = map[plan.Key]string{}
	for _, object := range slices.Concat(r.Workloads, r.Snapshot) {
		r.versions[plan.KeyOf(object)] = object.GroupVersionKind().Version
	}
	return err
}

// base takes up what was applied last.
func (r *reading) base(ctx context.Context) error {
	applied, _, err := r.Copies.List(ctx, r.Environment.UID)
	r.Base = make(map[plan.Key]*unstructured.Unstructured, len(applied))
	for _, object := range applied {
		key := plan.KeyOf(object)
		r.Base[key] = object
		if _, known := r.versions[key]; !known && plan.IsOnlyIncluded(key.GroupKind) {
			r.versions[key] = object.GroupVersionKind().Version
		}
	}
	return err
}
