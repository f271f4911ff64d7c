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
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/validation"
)

// edit is a change of a spec, its creation included, by an authenticated user.
type edit struct {
	// generation is the one that the change has made.
	generation int64
	actor      string
	time       metav1.Time
}

// edits say how a kind keeps in its status who has changed its spec, until a controller has seen to it. They are written
// together with the spec, so that no crash parts a change from its author. T is the type of the status.
type edits[T any] struct {
	// admit says why no change by actor can be kept besides those that are there.
	admit func(status *T, actor string) error
	// note keeps a change. The status shares its lists with what is stored.
	note func(status *T, e edit)
}

// editRetrySeconds is when a client should try again that was sent away because too many changes wait.
const editRetrySeconds = 1

// catalogEdits keep the changes of a catalog that it does not show yet. Of changes that a user makes one after another the
// newest is kept: it holds the others.
func catalogEdits() *edits[configbutler.AppCatalogStatus] {
	return &edits[configbutler.AppCatalogStatus]{
		admit: func(status *configbutler.AppCatalogStatus, actor string) error {
			waiting := status.PendingEdits
			if len(waiting) < validation.MaxPendingEdits || continues(waiting, actor) {
				return nil
			}
			return apierrors.NewTooManyRequests(fmt.Sprintf(
				"%d changes of this catalog, by several users in turn, wait to be taken over; its conditions say why", len(waiting)), editRetrySeconds)
		},
		note: func(status *configbutler.AppCatalogStatus, e edit) {
			before := status.PendingEdits
			if continues(before, e.actor) {
				before = before[:len(before)-1]
			}
			status.PendingEdits = slices.Concat(before, []configbutler.CatalogEdit{{Generation: e.generation, Actor: e.actor, Time: e.time}})
		},
	}
}

// continues says whether the newest change that waits is by the same user.
func continues(waiting []configbutler.CatalogEdit, actor string) bool {
	return len(waiting) > 0 && waiting[len(waiting)-1].Actor == actor
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

// noteEdit notes that the user of a request has made the generation that obj has. A change that nobody is known to have
// made is not noted.
func (s objectStrategy) noteEdit(ctx context.Context, obj runtime.Object) {
	if actor, ok := actorOf(ctx); ok {
		s.resource.noteEdit(obj, edit{
			generation: generationOf(obj), actor: actor.Username, time: metav1.NewTime(s.clock.Now().Truncate(time.Second)),
		})
	}
}
