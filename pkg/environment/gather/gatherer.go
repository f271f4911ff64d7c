// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	typed "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
)

// Gatherer reads situations. It may be used concurrently.
type Gatherer struct {
	// Slipstream reads our own kinds; Client, Metadata and Mapper, the others.
	Slipstream typed.ConfigbutlerV1alpha1Interface
	Client     dynamic.Interface
	Metadata   metadata.Interface
	Mapper     meta.RESTMapper
	// Limiter is waited for before each request for objects of the source and the target.
	Limiter flowcontrol.RateLimiter
	// Concurrency is how many of these requests are made at once, at least 1.
	Concurrency int

	// Planner is the one that makes the plans.
	Planner   plan.Planner
	Copies    Copies
	Revisions Revisions
	Clock     clock.PassiveClock
}

// Copies are what was applied last in environments, as copies.Copies has it.
type Copies interface {
	List(ctx context.Context, environment types.UID) (objects []*unstructured.Unstructured, revision int64, err error)
}

// Revisions are what catalogs offered with their revisions.
type Revisions interface {
	// Offered returns what a catalog offered with a revision, by workload; nil if that is not kept.
	Offered(
		ctx context.Context, catalog types.UID, revision int64,
	) (map[v1alpha1.WorkloadReference]*v1alpha1.CatalogWorkloadRecord, error)
}

// Request says what is to be planned.
type Request struct {
	Environment *v1alpha1.Environment
	// Revision is that of the catalog which the environment is to have, 0 for the one that it offers now.
	Revision int64

	Action     v1alpha1.SyncAction
	Only       []v1alpha1.WorkloadReference
	Force      bool
	Resolution v1alpha1.ConflictResolutionSpec
}

// Gather reads the situation that a request meets.
func (g *Gatherer) Gather(ctx context.Context, request Request) (plan.Situation, error) {
	r := &reading{Gatherer: g, Situation: &plan.Situation{
		Environment: request.Environment, Action: request.Action, Only: request.Only, Force: request.Force, Resolution: request.Resolution,
		Now: metav1.NewTime(g.Clock.Now()),
	}}
	if err := r.read(ctx, request.Revision); err != nil {
		return plan.Situation{}, fmt.Errorf("read what environment %s/%s is made of: %w",
			request.Environment.Namespace, request.Environment.Name, err)
	}
	return *r.Situation, nil
}

// reading is a situation that is being read.
type reading struct {
	*Gatherer
	*plan.Situation
	// versions are those of workloads, which are read in the target as the catalog has them.
	versions map[plan.Key]string
}

func (r *reading) read(ctx context.Context, revision int64) error {
	catalog, err := r.catalog(ctx)
	if err != nil {
		return err
	}
	r.SourceNamespace, r.Revision = catalog.Spec.SourceNamespace, cmp.Or(revision, catalog.Status.Revision)
	if r.Workloads, err = r.offered(ctx, catalog); err != nil {
		return err
	}
	r.versions = map[plan.Key]string{}
	for _, workload := range r.Workloads {
		r.versions[plan.KeyOf(workload)] = workload.GroupVersionKind().Version
	}
	if err := r.records(ctx); err != nil {
		return err
	}
	if err := r.base(ctx); err != nil {
		return err
	}
	return r.objects(ctx)
}

// base takes up what was applied last.
func (r *reading) base(ctx context.Context) error {
	applied, _, err := r.Copies.List(ctx, r.Environment.UID)
	r.Base = make(map[plan.Key]*unstructured.Unstructured, len(applied))
	for _, object := range applied {
		r.Base[plan.KeyOf(object)] = object
	}
	return err
}
