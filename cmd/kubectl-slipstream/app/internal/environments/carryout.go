// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// progress returns where the progress of a sync is printed, after a line that says how to end the wait.
func (r *requester) progress() *cli.Progress {
	return &cli.Progress{Out: r.ErrOut, Notice: cli.WaitNotice("sync", r.Timeout)}
}

// carryOut waits until what was requested has ended, unless the user does not want that. It sets the state of the answer, and an error if
// the sync has failed.
func (r *requester) carryOut(ctx context.Context, a *answer, progress *cli.Progress) {
	if !r.Wait || r.IsDryRun() {
		return
	}
	if a.err = r.follow(ctx, a, progress); cli.IsOver(a.err) {
		a.err = fmt.Errorf("stopped waiting for %s: %w; the sync continues, and %s shows its progress", a.of.Named(a.name), a.err, r.watchCommand(a))
	}
}

// follow waits for the records of a request.
func (r *requester) follow(ctx context.Context, a *answer, progress *cli.Progress) error {
	if len(a.outcome.SyncStatuses) == 0 && a.outcome.ID != "" {
		if err := r.untilBegun(ctx, a, progress); err != nil {
			return err
		}
	}
	for _, name := range a.outcome.SyncStatuses {
		record, err := r.untilEnded(ctx, a, name, progress)
		if err != nil {
			return err
		}
		if record != nil {
			a.records = append(a.records, record)
			if problem := r.problemOf(record); problem != nil {
				return problem
			}
		}
	}
	r.untilRecorded(ctx, a)
	return nil
}

// statusLag is the maximum wait for the status of an environment to have what a record of it reports, which it has a moment later.
const statusLag = 10 * time.Second

// untilRecorded waits until the status of an environment has the results of the records, so that the next command finds them there: a rollback
// looks for the revision before the current one.
func (r *requester) untilRecorded(ctx context.Context, a *answer) {
	if a.of.Resource != cli.Environment.Resource {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, statusLag)
	defer cancel()
	// An error does not matter: the sync has succeeded.
	_ = cli.Follow(ctx, r.API.Environments(r.Namespace), a.of, a.name, &v1alpha1.Environment{}, func(e *v1alpha1.Environment) (bool, error) {
		isActive := func(record *v1alpha1.SyncStatus) bool { return slices.Contains(e.Status.ActiveSyncs, record.Name) }
		return !slices.ContainsFunc(a.records, isActive), nil
	})
}

// untilBegun waits until a request no longer waits, and sets the names of its records.
func (r *requester) untilBegun(ctx context.Context, a *answer, progress *cli.Progress) error {
	waited := false
	look := func(state string, waits bool) (bool, error) {
		names, err := r.recordsOf(ctx, a)
		if a.outcome.SyncStatuses = names; err != nil || len(names) > 0 {
			return err == nil, err
		}
		if waited = waited || waits; waited { // Otherwise the response says more.
			a.state = state
		}
		if waits {
			progress.Say(state)
		}
		return !waits, nil
	}
	if a.of.Resource == cli.AppCatalog.Resource {
		return cli.Follow(ctx, r.API.AppCatalogs(r.Namespace), a.of, a.name, &v1alpha1.AppCatalog{}, func(c *v1alpha1.AppCatalog) (bool, error) {
			pending := slices.ContainsFunc(c.Status.PendingSyncs, func(p v1alpha1.PendingCatalogSync) bool { return p.ID == a.outcome.ID })
			return look(summary.Catalog(c), pending || c.Status.ObservedGeneration < c.Generation)
		})
	}
	return cli.Follow(ctx, r.API.Environments(r.Namespace), a.of, a.name, &v1alpha1.Environment{}, func(e *v1alpha1.Environment) (bool, error) {
		pending := slices.ContainsFunc(e.Status.PendingRequests, func(p v1alpha1.PendingEnvironmentRequest) bool {
			return p.ID == a.outcome.ID
		})
		return look(summary.Environment(e), pending || e.Status.ObservedGeneration < e.Generation)
	})
}

// recordsOf returns the names of the records that a request has created, and then of those that it has updated.
func (r *requester) recordsOf(ctx context.Context, a *answer) ([]string, error) {
	label := v1alpha1.LabelEnvironment
	if a.of.Resource == cli.AppCatalog.Resource {
		label = v1alpha1.LabelCatalog
	}
	list, err := r.API.SyncStatuses(r.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(labels.Set{label: a.name}).String(),
	})
	if err != nil {
		return nil, err
	}
	var created, updated []string
	for i := range list.Items {
		switch record := &list.Items[i]; a.outcome.ID {
		case record.Spec.Batch:
			created = append(created, record.Name)
		case record.Annotations[v1alpha1.AnnotationRequest]:
			updated = append(updated, record.Name)
		}
	}
	return append(created, updated...), nil
}

// untilEnded waits until a record has ended, or a user has to act, and returns it. A record of dependencies beside that of a sync is not
// waited for, because the sync includes it: it returns nil for it.
func (r *requester) untilEnded(ctx context.Context, a *answer, name string, progress *cli.Progress) (ended *v1alpha1.SyncStatus, err error) {
	var beside sync.WaitGroup
	defer beside.Wait()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	wait := &recordWait{of: r, answer: a, progress: progress, end: end}
	err = cli.Follow(ctx, r.API.SyncStatuses(r.Namespace), cli.SyncStatus, name, &v1alpha1.SyncStatus{}, func(s *v1alpha1.SyncStatus) (bool, error) {
		if len(a.records) > 0 && s.Spec.Type == v1alpha1.SyncTypeDependency {
			return true, nil
		}
		first := wait.record == nil
		if wait.recordIs(s); rests(s) {
			ended = s
			return true, nil
		}
		if first && s.Spec.Subject.Kind == v1alpha1.SubjectEnvironment {
			beside.Go(func() { wait.follow(ctx, s.Spec.Subject.Name) })
		}
		return false, nil
	})
	return ended, err
}

// rests reports whether nothing more happens to a record until a user acts.
func rests(record *v1alpha1.SyncStatus) bool {
	switch record.Status.State {
	case v1alpha1.SyncStateConflicted, v1alpha1.SyncStateManualIntervention:
		return true
	}
	return syncstatus.Settled(record)
}

// problemOf returns an error if a sync has not done what was requested, with the command that continues.
func (r *requester) problemOf(record *v1alpha1.SyncStatus) error {
	switch record.Status.State {
	case v1alpha1.SyncStateConflicted:
		return cli.Conflict("fields are in conflict: decide about them with kubectl slipstream resolve %s -n %s",
			cli.Quoted(record.Spec.Subject.Name), cli.Quoted(r.Namespace))
	case v1alpha1.SyncStateSuperseded:
		if record.Spec.Type == v1alpha1.SyncTypeDependency {
			return nil // The changes are reverted, or another sync has applied them.
		}
		return cli.Conflict("a newer sync has replaced this one")
	case v1alpha1.SyncStateFailed, v1alpha1.SyncStateRetrying, v1alpha1.SyncStateManualIntervention:
		return cli.Failed("the sync failed: correct the cause, then try again with kubectl slipstream retry %s -n %s",
			cli.Quoted(record.Name), cli.Quoted(r.Namespace))
	case v1alpha1.SyncStateDismissed:
		if record.Spec.Type != v1alpha1.SyncTypeCatalog {
			return cli.Failed("the sync failed, and %s has dismissed it", record.Status.ResolvedBy)
		}
	}
	return nil
}

// watchCommand returns the command that shows the progress of a request.
func (r *requester) watchCommand(a *answer) string {
	if a.outcome != nil && len(a.outcome.SyncStatuses) > 0 {
		return fmt.Sprintf("kubectl get syncstatus %s -n %s --watch", cli.Quoted(a.outcome.SyncStatuses[len(a.records)]), cli.Quoted(r.Namespace))
	}
	resource := a.of.Resource
	if a.of.Resource == cli.GitDestination.Resource {
		resource = cli.GitDestinationStatus.Resource
	}
	return fmt.Sprintf("kubectl get %s %s%s --watch", resource, cli.Quoted(a.name), r.InNamespace(a.of))
}
