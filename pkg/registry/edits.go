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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// edit is a creation or a change of a spec.
type edit struct {
	// generation is the one that the edit created.
	generation int64
	// user is the authenticated author, nil if unknown.
	user user.Info
	time metav1.Time
}

// author returns the author of the edit, nil if unknown.
func (e edit) author() *configbutler.AutomatedBy {
	if e.user == nil {
		return nil
	}
	return &configbutler.AutomatedBy{
		Username: e.user.GetName(), UID: types.UID(e.user.GetUID()), Groups: slices.Clone(e.user.GetGroups()), Time: e.time,
	}
}

// edits define how a kind records the authors of spec changes in its status until a controller has processed them. They
// are written together with the spec, so that a crash cannot separate a change from its author. O is a pointer to the
// type of the objects.
type edits[O any] struct {
	// admit returns an error if no further edit by actor can be recorded.
	admit func(stored O, actor string) error
	// record records an edit that changed old, which is nil for a creation, to obj. The status of obj shares its lists
	// with the stored object.
	record func(obj, old O, e edit)
}

// editRetrySeconds is the Retry-After of a response to an edit that is rejected because too many are pending.
const editRetrySeconds = 1

// admitEdits returns an error if no further edit by actor can be recorded. newest is the author of the newest pending
// edit: consecutive edits of one user are merged.
func admitEdits(waiting int, newest, actor, what string) error {
	if waiting < v1alpha1.MaxPendingEdits || newest == actor {
		return nil
	}
	return apierrors.NewTooManyRequests(fmt.Sprintf(
		"%d changes of this %s, by several users in turn, wait to be taken over; its conditions say why", waiting, what), editRetrySeconds)
}

// catalogEdits record the pending edits of a catalog, and the user by whose permissions it reads its source.
func catalogEdits() *edits[*configbutler.AppCatalog] {
	newest := func(waiting []configbutler.CatalogEdit) string {
		if len(waiting) == 0 {
			return ""
		}
		return waiting[len(waiting)-1].Actor
	}
	return &edits[*configbutler.AppCatalog]{
		admit: func(stored *configbutler.AppCatalog, actor string) error {
			waiting := stored.Status.PendingEdits
			return admitEdits(len(waiting), newest(waiting), actor, "catalog")
		},
		record: func(obj, old *configbutler.AppCatalog, e edit) {
			if old == nil || !catalogNeedsNoNewAccess(&obj.Spec, &old.Spec) {
				obj.Status.EditedBy = e.author()
			}
			if e.user == nil {
				return
			}
			before, actor := obj.Status.PendingEdits, e.user.GetName()
			if newest(before) == actor {
				before = before[:len(before)-1]
			}
			obj.Status.PendingEdits = slices.Concat(before, []configbutler.CatalogEdit{{Generation: e.generation, Actor: actor, Time: e.time}})
		},
	}
}

// ruleEdits record the last author of a rule's spec, whose permission to read the selected objects is required. O is a
// pointer to the type of the rules.
func ruleEdits[O object](status func(O) *configbutler.WatchRuleStatus) *edits[O] {
	return &edits[O]{
		admit:  func(O, string) error { return nil },
		record: func(obj, _ O, e edit) { status(obj).EditedBy = e.author() },
	}
}

// pipelineEdits record the user by whose permissions a pipeline sends objects: the last one who made it send more, or
// elsewhere.
func pipelineEdits() *edits[*configbutler.SyncPipeline] {
	return &edits[*configbutler.SyncPipeline]{
		admit: func(*configbutler.SyncPipeline, string) error { return nil },
		record: func(obj, old *configbutler.SyncPipeline, e edit) {
			if old == nil || !pipelineNeedsNoNewAccess(&obj.Spec, &old.Spec) {
				obj.Status.EditedBy = e.author()
			}
		},
	}
}

// notificationEdits record the user by whose permissions a sink sends notifications: the last one who made it send more,
// or elsewhere.
func notificationEdits() *edits[*configbutler.NotificationSink] {
	return &edits[*configbutler.NotificationSink]{
		admit: func(*configbutler.NotificationSink, string) error { return nil },
		record: func(obj, old *configbutler.NotificationSink, e edit) {
			if old == nil || !notificationNeedsNoNewAccess(obj, old) {
				obj.Status.EditedBy = e.author()
			}
		},
	}
}

// notificationNeedsNoNewAccess reports whether a change of a sink requires no further permissions, so that the previous
// author's permissions continue to apply.
func notificationNeedsNoNewAccess(sink, before *configbutler.NotificationSink) bool {
	now, err := versionedSink(sink)
	if err != nil {
		return false // The same conversion stores it.
	}
	was, err := versionedSink(before)
	return err == nil && access.NotificationSendsNoMore(&now.Spec, &was.Spec)
}

// pipelineNeedsNoNewAccess reports whether a change of a pipeline requires no further permissions, so that the previous
// author's permissions continue to apply.
func pipelineNeedsNoNewAccess(spec, before *configbutler.SyncPipelineSpec) bool {
	var versions [2]v1alpha1.SyncPipelineSpec
	for i, version := range []*configbutler.SyncPipelineSpec{spec, before} {
		if v1alpha1.Convert_configbutler_SyncPipelineSpec_To_v1alpha1_SyncPipelineSpec(version, &versions[i], nil) != nil {
			return false // The same conversion stores it.
		}
	}
	return access.PipelineSendsNoMore(&versions[0], &versions[1])
}

// catalogNeedsNoNewAccess reports whether a change of a catalog requires no further permissions to read its source, so
// that the previous author's permissions continue to apply.
func catalogNeedsNoNewAccess(spec, before *configbutler.AppCatalogSpec) bool {
	var versions [2]v1alpha1.AppCatalogSpec
	for i, version := range []*configbutler.AppCatalogSpec{spec, before} {
		if v1alpha1.Convert_configbutler_AppCatalogSpec_To_v1alpha1_AppCatalogSpec(version, &versions[i], nil) != nil {
			return false // The same conversion stores it.
		}
	}
	return access.CatalogShowsNoMore(&versions[0], &versions[1])
}

// beginUpdate rejects a change of the spec that cannot be recorded. PrepareForUpdate, which records it, cannot fail.
func (s objectStrategy) beginUpdate(
	ctx context.Context, obj, old runtime.Object, _ *metav1.UpdateOptions,
) (genericregistry.FinishFunc, error) {
	if actor, ok := actorOf(ctx); ok && s.resource.specChanged(obj, old) {
		if err := s.resource.admitEdit(old, actor.Username); err != nil {
			return nil, err
		}
	}
	return func(context.Context, bool) {}, nil
}

// recordEdit records the user of a request as the author of obj's generation. old is nil for a creation.
func (s objectStrategy) recordEdit(ctx context.Context, obj, old runtime.Object) {
	e := edit{generation: generationOf(obj), time: metav1.NewTime(s.clock.Now().Truncate(time.Second))}
	if info, ok := userOf(ctx); ok {
		e.user = info
	}
	s.resource.recordEdit(obj, old, e)
}
