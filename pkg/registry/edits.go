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

// edit is a change of a spec, its creation included.
type edit struct {
	// generation is the one that the change has made.
	generation int64
	// user is who made it, as authenticated; nil when nobody is known to have.
	user user.Info
	time metav1.Time
}

// author is who made the change, nil when nobody is known to have.
func (e edit) author() *configbutler.AutomatedBy {
	if e.user == nil {
		return nil
	}
	return &configbutler.AutomatedBy{
		Username: e.user.GetName(), UID: types.UID(e.user.GetUID()), Groups: slices.Clone(e.user.GetGroups()), Time: e.time,
	}
}

// edits say how a kind keeps in its status who has changed its spec, until a controller has seen to it. They are written
// together with the spec, so that no crash parts a change from its author. O is a pointer to the type of the objects.
type edits[O any] struct {
	// admit says why no change by actor can be kept besides those that are there.
	admit func(stored O, actor string) error
	// note keeps a change that has made obj of old, which is nil at a creation. The status of obj shares its lists with what
	// is stored.
	note func(obj, old O, e edit)
}

// editRetrySeconds is when a client should try again that was sent away because too many changes wait.
const editRetrySeconds = 1

// admitEdits says why no change by actor can be kept besides those that wait, of which newest made the last. Of changes that
// a user makes one after another the newest is kept: it holds the others.
func admitEdits(waiting int, newest, actor, what string) error {
	if waiting < v1alpha1.MaxPendingEdits || newest == actor {
		return nil
	}
	return apierrors.NewTooManyRequests(fmt.Sprintf(
		"%d changes of this %s, by several users in turn, wait to be taken over; its conditions say why", waiting, what), editRetrySeconds)
}

// catalogEdits keep the changes of a catalog that it does not show yet, and who answers for what it shows.
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
		note: func(obj, old *configbutler.AppCatalog, e edit) {
			if old == nil || !showsNoMore(&obj.Spec, &old.Spec) {
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

// ruleEdits keep who wrote the spec of a rule last, which takes the right to read all that it selects. O is a pointer to the type of
// the rules.
func ruleEdits[O object](status func(O) *configbutler.WatchRuleStatus) *edits[O] {
	return &edits[O]{
		admit: func(O, string) error { return nil },
		note:  func(obj, _ O, e edit) { status(obj).EditedBy = e.author() },
	}
}

// pipelineEdits keep who answers for what a pipeline sends: whoever had it send more, or elsewhere.
func pipelineEdits() *edits[*configbutler.SyncPipeline] {
	return &edits[*configbutler.SyncPipeline]{
		admit: func(*configbutler.SyncPipeline, string) error { return nil },
		note: func(obj, old *configbutler.SyncPipeline, e edit) {
			if old == nil || !sendsNoMore(&obj.Spec, &old.Spec) {
				obj.Status.EditedBy = e.author()
			}
		},
	}
}

// sendsNoMore says whether a change of a pipeline takes no right, so that its author stays who answers for it.
func sendsNoMore(spec, before *configbutler.SyncPipelineSpec) bool {
	var versions [2]v1alpha1.SyncPipelineSpec
	for i, version := range []*configbutler.SyncPipelineSpec{spec, before} {
		if v1alpha1.Convert_configbutler_SyncPipelineSpec_To_v1alpha1_SyncPipelineSpec(version, &versions[i], nil) != nil {
			return false // The same conversion stores it.
		}
	}
	return access.PipelineSendsNoMore(&versions[0], &versions[1])
}

// showsNoMore says whether a change of a catalog takes no right to read its source, so that its author stays who answers for it.
func showsNoMore(spec, before *configbutler.AppCatalogSpec) bool {
	var versions [2]v1alpha1.AppCatalogSpec
	for i, version := range []*configbutler.AppCatalogSpec{spec, before} {
		if v1alpha1.Convert_configbutler_AppCatalogSpec_To_v1alpha1_AppCatalogSpec(version, &versions[i], nil) != nil {
			return false // The same conversion stores it.
		}
	}
	return access.CatalogShowsNoMore(&versions[0], &versions[1])
}

// beginUpdate refuses a change of the spec that cannot be noted. What notes it, PrepareForUpdate, cannot fail.
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

// noteEdit notes that the user of a request has made the generation that obj has of old, which is nil at a creation.
func (s objectStrategy) noteEdit(ctx context.Context, obj, old runtime.Object) {
	e := edit{generation: generationOf(obj), time: metav1.NewTime(s.clock.Now().Truncate(time.Second))}
	if info, ok := userOf(ctx); ok {
		e.user = info
	}
	s.resource.noteEdit(obj, old, e)
}
