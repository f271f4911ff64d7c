// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// recordWait is a wait for a record. While the record has not begun, the environment says why, and it ends if a user has to act before.
type recordWait struct {
	of       *requester
	answer   *answer
	progress *cli.Progress
	// end ends the wait with an error.
	end context.CancelCauseFunc

	mu     sync.Mutex
	record *v1alpha1.SyncStatus
	// environment is nil until it is known.
	environment *v1alpha1.Environment
}

// recordIs takes a state of the record.
func (w *recordWait) recordIs(record *v1alpha1.SyncStatus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.record = record
	w.say()
}

// environmentIs takes a state of the environment.
func (w *recordWait) environmentIs(environment *v1alpha1.Environment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.environment = environment
	w.say()
}

// follow follows the environment of the record, until ctx ends. If it cannot be read, only the record says how far the sync is.
func (w *recordWait) follow(ctx context.Context, name string) {
	err := cli.Follow(ctx, w.of.API.Environments(w.of.Namespace), cli.Environment, name, &v1alpha1.Environment{},
		func(e *v1alpha1.Environment) (bool, error) {
			w.environmentIs(e)
			return false, nil
		})
	if err != nil && ctx.Err() == nil {
		w.environmentIs(&v1alpha1.Environment{})
	}
}

// say says how far the sync is.
func (w *recordWait) say() {
	if w.answer.state = syncstatus.Summary(w.record); rests(w.record) {
		return
	}
	if w.record.Status.State == v1alpha1.SyncStatePending && w.record.Spec.Subject.Kind == v1alpha1.SubjectEnvironment {
		if w.environment == nil {
			return // What it says is better than Waiting.
		}
		if w.environment.Name != "" && !slices.Contains(w.environment.Status.ActiveSyncs, w.record.Name) {
			return // Its status is older than the record.
		}
		if stalled := obstacleOf(w.environment); stalled != nil {
			w.answer.state = summary.Environment(w.environment)
			w.end(w.of.stalled(w.environment, stalled))
			return
		}
		if w.environment.Name != "" && w.record.Spec.Type != v1alpha1.SyncTypeDependency { // That says what has changed, as the environment does.
			w.answer.state += ": " + summary.Environment(w.environment)
		}
	}
	w.progress.Say(w.answer.state)
}

// obstacleOf returns the condition of an environment that cannot be synced before a user has acted, nil if there is none. An environment can
// be stalled for other reasons, which a sync ends.
func obstacleOf(e *v1alpha1.Environment) *metav1.Condition {
	stalled := apimeta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionStalled)
	if stalled == nil || stalled.Status != metav1.ConditionTrue {
		return nil
	}
	switch stalled.Reason {
	case v1alpha1.ReasonTargetNotFound:
		if e.Spec.CreateNamespace {
			return nil // The sync creates it.
		}
		return stalled
	case v1alpha1.ReasonCatalogNotFound, v1alpha1.ReasonAccessNotGranted, v1alpha1.ReasonBaseNotFound, v1alpha1.ReasonTargetIsSource,
		v1alpha1.ReasonTargetTaken:
		return stalled
	}
	return nil
}

// stalled returns the error for an environment that cannot be synced before a user has acted.
func (r *requester) stalled(e *v1alpha1.Environment, stalled *metav1.Condition) error {
	return cli.Conflict("%s is stalled: %s: %s. The sync waits, and begins when that is corrected: %s",
		cli.Environment.Named(e.Name), stalled.Reason, stalled.Message, r.correction(e, stalled.Reason))
}

// correction returns what to do about an obstacle.
func (r *requester) correction(e *v1alpha1.Environment, reason string) string {
	catalog := e.Spec.CatalogRef.NamespacedName(e.Namespace)
	switch reason {
	case v1alpha1.ReasonTargetNotFound:
		return fmt.Sprintf("create the namespace with kubectl create namespace %s, or have the server create it, as kubectl slipstream "+
			"environment --create-namespace does: kubectl patch environment %s -n %s --type merge -p '{\"spec\":{\"createNamespace\":true}}'",
			cli.Quoted(e.Spec.TargetNamespace), cli.Quoted(e.Name), cli.Quoted(e.Namespace))
	case v1alpha1.ReasonCatalogNotFound:
		return fmt.Sprintf("create the catalog with kubectl slipstream catalog %s -n %s --from NAMESPACE --apply",
			cli.Quoted(catalog.Name), cli.Quoted(catalog.Namespace))
	case v1alpha1.ReasonAccessNotGranted:
		return fmt.Sprintf("admit the namespace %s in spec.accessPolicy of AppCatalog %s", e.Namespace, catalog)
	case v1alpha1.ReasonBaseNotFound:
		return "restore the base of the Branch, or delete the Branch"
	}
	return "delete the environment, and create one for another namespace with kubectl slipstream environment NAME --target NAMESPACE"
}
