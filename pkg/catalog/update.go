// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
	"github.com/configbutler/slipstream/pkg/catalog/revisions"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/controller/tracing"
	typed "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// errDeleting is returned if a catalog or its namespace is being deleted. The update is then abandoned without an error.
var errDeleting = errors.New("the catalog is being deleted")

// updater updates catalogs. Every update can be repeated, also after it was interrupted.
type updater struct {
	api       typed.ConfigbutlerV1alpha1Interface
	records   controller.Records
	written   *mutationCache
	clock     clock.PassiveClock
	revisions *revisions.Store
	// blocked has why a catalog cannot be updated if no record can report it: its record already reports success, or cannot be written.
	blocked reasons
	// source returns why a source namespace cannot be read.
	source func(namespace string) conditions.Reason
	// failure returns why a catalog does not offer what its spec selects.
	failure func(catalog *v1alpha1.AppCatalog) conditions.Reason
	// observed is called with the hashes of the source content that a catalog has been updated to.
	observed func(catalog *v1alpha1.AppCatalog, hashes map[reference]string)
	events   *events
	namer    *commitNamer
	// authors finds the authors of changes that were found by a comparison.
	authors Authors
	// auditWait returns how long after its first event a comparison may wait for reports of authors.
	auditWait func() time.Duration
}

// task is the state of one update of a catalog.
type task struct {
	trigger trigger
	catalog *v1alpha1.AppCatalog
	// held are the CatalogWorkloads of the catalog.
	held map[reference]*v1alpha1.CatalogWorkload
	// record is the SyncStatus of an earlier attempt, nil if there is none. name is the name of the SyncStatus in both cases.
	record *v1alpha1.SyncStatus
	name   string
	// written is the SyncStatus that this attempt has written, nil if it has written none.
	written *v1alpha1.SyncStatus
	// compared is true if the whole spec was applied to the whole source.
	compared bool
}

// update updates a catalog to the state of its source for a trigger. A catalog that is being deleted is not updated.
func (u *updater) update(ctx context.Context, of *v1alpha1.AppCatalog, why trigger, source sourceState) (err error) {
	ctx, span := startSpan(ctx, of, why)
	defer func() { tracing.End(span, err) }()
	t, err := u.read(ctx, of, why)
	if err == nil {
		err = u.perform(ctx, t, source)
	}
	if errors.Is(err, errDeleting) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("update AppCatalog %s/%s: %w", of.Namespace, of.Name, err)
	}
	return nil
}

// read reads the current objects from the API, because the cache may lack the latest writes.
func (u *updater) read(ctx context.Context, of *v1alpha1.AppCatalog, why trigger) (t *task, err error) {
	t = &task{trigger: why}
	t.catalog, err = u.api.AppCatalogs(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, errDeleting
	case err != nil:
		return nil, fmt.Errorf("read it: %w", err)
	case t.catalog.UID != of.UID || t.catalog.DeletionTimestamp != nil:
		return nil, errDeleting
	case t.catalog.Generation != of.Generation:
		// The source was read for what the earlier spec selects.
		return nil, apierrors.NewConflict(v1alpha1.Resource("appcatalogs"), of.Name,
			fmt.Errorf("its spec has changed meanwhile, from generation %d to %d", of.Generation, t.catalog.Generation))
	}
	if t.held, err = u.readWorkloads(ctx, t.catalog); err != nil {
		return nil, err
	}
	t.record, t.name, err = syncstatus.Find(specOf(t.catalog, why.batch), func(name string) (*v1alpha1.SyncStatus, error) {
		return u.api.SyncStatuses(of.Namespace).Get(ctx, name, metav1.GetOptions{})
	})
	return t, err
}

// readWorkloads returns the CatalogWorkloads of a catalog, without those of an earlier catalog of the same name.
func (u *updater) readWorkloads(ctx context.Context, catalog *v1alpha1.AppCatalog) (map[reference]*v1alpha1.CatalogWorkload, error) {
	selector := labels.SelectorFromSet(labels.Set{v1alpha1.LabelCatalog: catalog.Name}).String()
	list, err := u.api.CatalogWorkloads(catalog.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("read its CatalogWorkloads: %w", err)
	}
	out := map[reference]*v1alpha1.CatalogWorkload{}
	for i := range list.Items {
		if workload := &list.Items[i]; metav1.IsControlledBy(workload, catalog) {
			out[reference{Kind: workload.Status.Kind, Name: workload.Status.Name}] = workload
		}
	}
	return out, nil
}

// perform performs the part of an update that earlier attempts have not completed. A stallingError is recorded.
func (u *updater) perform(ctx context.Context, t *task, source sourceState) error {
	switch {
	case t.trigger.processed(t.catalog), completed(t.record, t.catalog), u.refuses(t.catalog):
		return u.complete(ctx, t, nil)
	case t.trigger.postponed(t.catalog, t.record, u.clock.Now()):
		return u.postpone(ctx, t, source)
	}
	next, err := u.plan(ctx, t, source)
	if err == nil {
		err = u.attributeFound(t, next, source)
	}
	if err == nil {
		t.compared = !t.trigger.sourceChange
		err = u.commit(ctx, t, next)
	}
	if why := asStalling(err); why != nil {
		return u.fail(ctx, t, why)
	}
	if err == nil {
		u.blocked.delete(t.catalog.UID)
		u.observed(t.catalog, next.hashes)
	}
	return err
}

// refuses reports whether the source of a catalog must not be followed. The condition SourceReachable reports why.
func (u *updater) refuses(catalog *v1alpha1.AppCatalog) bool {
	code := u.source(catalog.Spec.SourceNamespace).Code
	return code == v1alpha1.ReasonSourceIsServer || code == v1alpha1.ReasonSourceIsTarget
}

// plan computes the plan of an update.
func (u *updater) plan(ctx context.Context, t *task, source sourceState) (plan, error) {
	if t.trigger.rollsBack(t.catalog, t.record) {
		return u.planRollback(ctx, t)
	}
	rules, err := capture.NewRules(&t.catalog.Spec)
	if err != nil {
		return plan{}, err
	}
	editPending := t.trigger.sourceChange && hasPendingEdit(t.catalog)
	in := planInput{
		catalog: t.catalog, rules: rules, held: t.held, source: source, now: u.clock.Now(),
		sourceOnly:  editPending || t.trigger.sourceChange && stalled(t.catalog) && u.blocked.get(t.catalog.UID).IsZero(),
		editPending: editPending,
		resumed:     applying(t.record),
		preview:     t.catalog.Spec.PreviewOnly && !applying(t.record),
	}
	if !t.trigger.sourceChange && !in.preview {
		if in.taken, err = u.revisions.BeforeRollback(ctx, t.catalog.UID, t.catalog.Status.Revision); err != nil {
			return plan{}, err
		}
	}
	return newPlan(in)
}

// commit writes a plan, in the order of the package comment.
func (u *updater) commit(ctx context.Context, t *task, next plan) error {
	record, err := u.writeRecord(ctx, t, next)
	if err != nil {
		return err
	}
	for _, workload := range next.writes {
		if err := u.write(ctx, workload); err != nil {
			return err
		}
	}
	if record == nil || record.Status.Revision <= t.catalog.Status.Revision {
		if next.endsRollback {
			if err := u.revisions.EndRollback(ctx, t.catalog.UID, t.catalog.Status.Revision); err != nil {
				return err
			}
		}
		return u.complete(ctx, t, nil)
	}
	content := revisions.Content{Entries: next.entries, Records: t.after(next), IsRollback: next.isRollback, EndsRollback: next.endsRollback}
	if err := u.revisions.Write(ctx, t.catalog, record.Status.Revision, content); err != nil {
		return err
	}
	return u.complete(ctx, t, func(catalog *v1alpha1.AppCatalog) { advance(catalog, next.entries, record.Name, u.clock.Now()) })
}

// after returns the CatalogWorkloads of the catalog after a plan has been written.
func (t *task) after(next plan) map[reference]*v1alpha1.CatalogWorkload {
	out := maps.Clone(t.held)
	for _, workload := range next.writes {
		out[reference{Kind: workload.Status.Kind, Name: workload.Status.Name}] = workload
	}
	return out
}
