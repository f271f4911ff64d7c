// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/access/accesspolicy"
	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// environmentRequests implements the request subresources of Environments. Requests for the controller are added to the
// status of the environment, from where the current or next leader processes them.
type environmentRequests struct {
	// environments updates the spec of Environments, statuses their status. The other stores are read.
	environments, statuses, records, catalogs *genericregistry.Store
	plans                                     *plans
	// moves dismisses records.
	moves *recordRequests
	// labels returns the labels of namespaces, by which catalogs admit environments.
	labels      accesspolicy.Labels
	clock       clock.PassiveClock
	waitTimeout time.Duration
}

// newRequest returns a pending request by the user of ctx.
func (r *environmentRequests) newRequest(
	ctx context.Context, of configbutler.EnvironmentRequestType,
) (configbutler.PendingEnvironmentRequest, error) {
	actor, err := requester(ctx)
	request := configbutler.PendingEnvironmentRequest{
		ID: string(uuid.NewUUID()), Actor: actor, Time: metav1.NewTime(r.clock.Now().Truncate(time.Second)), Type: of,
	}
	if who, known := userOf(ctx); known {
		request.UID, request.Groups = types.UID(who.GetUID()), slices.Clone(who.GetGroups())
	}
	return request, err
}

// addRequest adds a request to the pending ones of an environment, unless check rejects it for the stored object.
func (r *environmentRequests) addRequest(
	ctx context.Context, name string, dryRun []string, request configbutler.PendingEnvironmentRequest,
	check func(*configbutler.Environment) error,
) (*configbutler.Environment, error) {
	return change(ctx, r.statuses, name, dryRun, func(environment *configbutler.Environment) error {
		if environment.DeletionTimestamp != nil {
			return refused("environments", name, "it is being deleted")
		}
		if err := check(environment); err != nil {
			return err
		}
		if n := len(environment.Status.PendingRequests); n >= v1alpha1.MaxPendingSyncs {
			return apierrors.NewTooManyRequests(fmt.Sprintf("%d requests wait for this environment; its conditions say why", n), requestRetrySeconds)
		}
		environment.Status.PendingRequests = append(environment.Status.PendingRequests, request)
		return nil
	})
}

// awaitStart waits for a while until a pending request is processed, or begun reports that processing has started. It
// returns the current environment, or nil if neither happened.
func (r *environmentRequests) awaitStart(
	ctx context.Context, noted *configbutler.Environment, id string, begun func() bool,
) *configbutler.Environment {
	var taken *configbutler.Environment
	await(ctx, r.waitTimeout, r.statuses, noted.Name, noted.ResourceVersion, func(now *configbutler.Environment) bool {
		waits := slices.ContainsFunc(now.Status.PendingRequests, func(p configbutler.PendingEnvironmentRequest) bool { return p.ID == id })
		if waits && !begun() {
			return false
		}
		taken = now
		return true
	})
	return taken
}

// catalogOf reads the AppCatalog of an environment. It returns an error, which rejects every request, if the catalog
// does not exist or no longer admits the environment.
func (r *environmentRequests) catalogOf(ctx context.Context, environment *configbutler.Environment) (*configbutler.AppCatalog, error) {
	name := v1alpha1.ObjectReference(environment.Spec.CatalogRef).NamespacedName(environment.Namespace)
	catalog, err := read[*configbutler.AppCatalog](genericapirequest.WithNamespace(ctx, name.Namespace), r.catalogs, name.Name)
	if apierrors.IsNotFound(err) {
		return nil, refused("environments", environment.Name,
			fmt.Sprintf("AppCatalog %s, which it is built from, does not exist", name))
	}
	if err != nil {
		return nil, err
	}
	shown, err := versionedCatalog(catalog)
	if err != nil {
		return nil, err
	}
	if !accesspolicy.AdmitsToCatalog(shown.Spec.AccessPolicy, name.Namespace, environment.Namespace, r.labels) {
		return nil, refused("environments", environment.Name, fmt.Sprintf(
			"AppCatalog %s does not admit Environments of the namespace %s; its spec.accessPolicy can", name,
			environment.Namespace))
	}
	return catalog, nil
}

// versionedCatalog converts a catalog to v1alpha1. The result shares data with the given catalog.
func versionedCatalog(catalog *configbutler.AppCatalog) (*v1alpha1.AppCatalog, error) {
	out := &v1alpha1.AppCatalog{}
	if err := v1alpha1.Convert_configbutler_AppCatalog_To_v1alpha1_AppCatalog(catalog, out, nil); err != nil {
		return nil, fmt.Errorf("converting AppCatalog %s/%s: %w", catalog.Namespace, catalog.Name, err)
	}
	return out, nil
}

// recordOf returns the SyncStatus of a batch of an environment, and the name that it has or will have. The record is
// nil if it does not exist or cannot be read: the request is executed all the same.
func (r *environmentRequests) recordOf(
	ctx context.Context, environment *configbutler.Environment, of v1alpha1.SyncType, batch string,
) (record *v1alpha1.SyncStatus, name string) {
	spec := v1alpha1.SyncStatusSpec{
		Type: of, Batch: batch,
		Subject: v1alpha1.SyncSubject{Kind: v1alpha1.SubjectEnvironment, Name: environment.Name, UID: environment.UID},
	}
	record, name, err := syncstatus.Find(spec, func(name string) (*v1alpha1.SyncStatus, error) { return getRecord(ctx, r.records, name) })
	if err != nil {
		return nil, ""
	}
	return record, name
}

// waiting returns the message for a request that is accepted but not yet processed.
func waiting(environment *configbutler.Environment, id string) string {
	return fmt.Sprintf("The request is accepted; until it is processed, status.pendingRequests of Environment %s (%s) has it under the id %s",
		environment.Name, environmentState(environment), id)
}
