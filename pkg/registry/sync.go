// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/validation"
)

const (
	// syncPatience is how long an answer waits for what is found. The aggregator cuts requests off after 34 s.
	syncPatience = 10 * time.Second
	// syncRetrySeconds is when a client should try again that was sent away because too many requests wait.
	syncRetrySeconds = 10
)

// syncREST is the subresource sync of a GitDestination. It notes the request in the status of the destination, where the
// replica that leads finds it, now or when one leads again, and waits a while for what that one finds.
type syncREST struct {
	// destinations changes the status of GitDestinations, records reads GitDestinationStatuses.
	destinations, records *genericregistry.Store
	clock                 clock.PassiveClock
}

var (
	_ rest.Storage      = &syncREST{}
	_ rest.Scoper       = &syncREST{}
	_ rest.NamedCreater = &syncREST{}
)

// New returns an empty request.
func (*syncREST) New() runtime.Object { return &configbutler.MirrorSync{} }

// Destroy leaves the storage to the main endpoints, which own it.
func (*syncREST) Destroy() {}

// NamespaceScoped is true: a destination has a namespace.
func (*syncREST) NamespaceScoped() bool { return true }

// Create accepts a request for the destination called name.
func (r *syncREST) Create(
	ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions,
) (runtime.Object, error) {
	request, ok := obj.(*configbutler.MirrorSync)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a MirrorSync: %T", obj))
	}
	if err := r.judge(ctx, name, request); err != nil {
		return nil, err
	}
	if validate != nil {
		if err := validate(ctx, request.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	answer := request.DeepCopy()
	answer.Name, answer.ManagedFields = name, nil
	if dryrun.IsDryRun(options.DryRun) {
		answer.Status = configbutler.MirrorSyncStatus{Accepted: true, Message: "Would compare " + wanted(request) + " (dry run)"}
		return answer, nil
	}
	id := string(uuid.NewUUID())
	if err := r.note(ctx, name, configbutler.PendingSync{
		ID: id, Time: metav1.NewTime(r.clock.Now().Truncate(time.Second)), Types: request.Spec.Types, Full: request.Spec.Full,
	}); err != nil {
		return nil, err
	}
	answer.Status = r.await(ctx, name, id)
	return answer, nil
}

// judge says why a request cannot be accepted.
func (r *syncREST) judge(ctx context.Context, name string, request *configbutler.MirrorSync) error {
	kind := configbutler.Kind("MirrorSync")
	if errs := validation.ValidateMirrorSync(request, name); len(errs) > 0 {
		return apierrors.NewInvalid(kind, name, errs)
	}
	destination, err := r.destination(ctx, name)
	if err != nil {
		return err
	}
	if destination.Spec.Suspend {
		return r.conflict(name, "spec.suspend is set, so nothing is written; lift it, and everything is compared")
	}
	selected, err := r.selected(ctx, name)
	if err != nil {
		return err
	}
	if errs := validation.ValidateMirrorSyncTypes(request, selected); len(errs) > 0 {
		return apierrors.NewInvalid(kind, name, errs)
	}
	return nil
}

func (r *syncREST) conflict(name, reason string) error {
	return apierrors.NewConflict(configbutler.Resource("gitdestinations"), name, errors.New(reason))
}

func (r *syncREST) destination(ctx context.Context, name string) (*configbutler.GitDestination, error) {
	obj, err := r.destinations.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	destination, ok := obj.(*configbutler.GitDestination)
	if !ok {
		return nil, fmt.Errorf("reading GitDestination %s: got a %T", name, obj)
	}
	return destination, nil
}

// selected are the types that the rules of the destination select, as the replica that leads has found.
func (r *syncREST) selected(ctx context.Context, name string) ([]configbutler.ResourceType, error) {
	obj, err := r.records.Get(ctx, name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	record, ok := obj.(*configbutler.GitDestinationStatus)
	if !ok {
		return nil, fmt.Errorf("reading GitDestinationStatus %s: got a %T", name, obj)
	}
	types := make([]configbutler.ResourceType, len(record.Status.Watches))
	for i, watched := range record.Status.Watches {
		types[i] = watched.ResourceType
	}
	return types, nil
}

// note makes a request durable.
func (r *syncREST) note(ctx context.Context, name string, request configbutler.PendingSync) error {
	add := func(_ context.Context, _, obj runtime.Object) (runtime.Object, error) {
		destination, ok := obj.(*configbutler.GitDestination)
		if !ok {
			return nil, fmt.Errorf("changing GitDestination %s: got a %T", name, obj)
		}
		if len(destination.Status.PendingSyncs) >= validation.MaxPendingSyncs {
			return nil, apierrors.NewTooManyRequests(fmt.Sprintf(
				"%d requests wait for this destination; its GitDestinationStatus says why", len(destination.Status.PendingSyncs)), syncRetrySeconds)
		}
		destination = destination.DeepCopy()
		destination.Status.PendingSyncs = append(destination.Status.PendingSyncs, request)
		return destination, nil
	}
	_, _, err := r.destinations.Update(ctx, name, rest.DefaultUpdatedObjectInfo(nil, add),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}

// await waits until a request has been carried out, but not for long.
func (r *syncREST) await(ctx context.Context, name, id string) configbutler.MirrorSyncStatus {
	ctx, cancel := context.WithTimeout(ctx, syncPatience)
	defer cancel()
	answer := configbutler.MirrorSyncStatus{Accepted: true, Message: later("accepted", name, id)}
	watched, err := r.records.Watch(ctx, &internalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name)})
	if err != nil {
		return answer // the request is recorded all the same
	}
	defer watched.Stop()
	for {
		select {
		case event, open := <-watched.ResultChan():
			if !open {
				return answer
			}
			found := progressIn(event, id)
			if found == nil {
				continue
			}
			answer.Found, answer.Message = found, later("under way", name, id)
			if found.CompletionTime != nil {
				answer.Message = sentence(found)
				return answer
			}
		case <-ctx.Done():
			return answer
		}
	}
}

// later says where to look for what an answer did not wait for.
func later(state, name, id string) string {
	return fmt.Sprintf("The request is %s; status.syncs of GitDestinationStatus %s tells under the id %s what is found", state, name, id)
}

// progressIn is how far a request has come by an event of its record.
func progressIn(event watch.Event, id string) *configbutler.SyncProgress {
	obj := event.Object
	if cached, ok := obj.(runtime.CacheableObject); ok { // the watch cache shares its objects in this shape
		obj = cached.GetObject()
	}
	record, ok := obj.(*configbutler.GitDestinationStatus)
	if !ok {
		return nil
	}
	i := slices.IndexFunc(record.Status.Syncs, func(sync configbutler.SyncProgress) bool { return sync.ID == id })
	if i < 0 {
		return nil
	}
	return record.Status.Syncs[i].DeepCopy()
}

// sentence says what was found.
func sentence(found *configbutler.SyncProgress) string {
	text := fmt.Sprintf("Compared %d of %d types: %d files written, %d removed", found.Compared, found.Types, found.FilesWritten, found.FilesRemoved)
	if found.OrphansHeld > 0 {
		text += fmt.Sprintf(", %d that no object maps to kept", found.OrphansHeld)
	}
	if len(found.Failures) > 0 {
		text += "; " + strings.Join(found.Failures, "; ")
	}
	return text
}

// wanted says what a request asks for.
func wanted(request *configbutler.MirrorSync) string {
	switch {
	case len(request.Spec.Types) > 0:
		return strings.Join(request.Spec.Types, ", ")
	case request.Spec.Full:
		return "all types with the branch, read anew"
	default:
		return "all types"
	}
}
