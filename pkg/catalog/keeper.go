// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/catalog/capture"
	"github.com/configbutler/slipstream/pkg/catalog/revisions"
	"github.com/configbutler/slipstream/pkg/controller"
	typed "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// errGoing says that a catalog, or its namespace, is being deleted: nobody waits for it any more.
var errGoing = errors.New("the catalog is being deleted")

// keeper brings catalogs up to date. What it is asked for it can be asked for again, also after it has done a part.
type keeper struct {
	api       typed.ConfigbutlerV1alpha1Interface
	records   controller.Records
	unseen    *unseen
	clock     clock.PassiveClock
	revisions *revisions.Store
	obstacles obstacles
	// source says how the namespace can be read.
	source func(namespace string) verdict
	// trouble says what else keeps a catalog from being ready.
	trouble func(catalog *v1alpha1.AppCatalog) verdict
	// taken is told what a catalog knows of the source.
	taken  func(catalog *v1alpha1.AppCatalog, hashes map[reference]string)
	events *events
	naming *naming
	// author tells who made what a comparison has found, if the audit knows.
	author func(event attribution.Event, since time.Time) attribution.Author
}

// task is an occasion with all that is known when it is carried out.
type task struct {
	occasion
	catalog *v1alpha1.AppCatalog
	held    map[reference]*v1alpha1.CatalogWorkload
	// record is that of an earlier attempt, nil if there is none, which would have the name.
	record *v1alpha1.SyncStatus
	name   string
	// told is the record as it has been written now.
	told *v1alpha1.SyncStatus
	// compared says that the catalog can become what the whole spec makes of the whole source.
	compared bool
}

// carryOut brings a catalog to what was seen of its source. A catalog that is going is left alone.
func (k *keeper) carryOut(ctx context.Context, of *v1alpha1.AppCatalog, o occasion, seen sight) error {
	t, err := k.read(ctx, of, o)
	if err == nil {
		err = k.perform(ctx, t, seen)
	}
	if errors.Is(err, errGoing) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("bring AppCatalog %s/%s up to date: %w", of.Namespace, of.Name, err)
	}
	return nil
}

// read gets what the API has now. A cache may be older than what was written last.
func (k *keeper) read(ctx context.Context, of *v1alpha1.AppCatalog, o occasion) (t *task, err error) {
	t = &task{occasion: o}
	t.catalog, err = k.api.AppCatalogs(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, errGoing
	case err != nil:
		return nil, fmt.Errorf("read it: %w", err)
	case t.catalog.UID != of.UID || t.catalog.DeletionTimestamp != nil:
		return nil, errGoing
	case t.catalog.Generation != of.Generation:
		// The source was looked at for what the spec selected before.
		return nil, apierrors.NewConflict(v1alpha1.Resource("appcatalogs"), of.Name,
			fmt.Errorf("its spec has changed meanwhile, from generation %d to %d", of.Generation, t.catalog.Generation))
	}
	if t.held, err = k.held(ctx, t.catalog); err != nil {
		return nil, err
	}
	t.record, t.name, err = syncstatus.Find(specOf(t.catalog, o.batch), func(name string) (*v1alpha1.SyncStatus, error) {
		return k.api.SyncStatuses(of.Namespace).Get(ctx, name, metav1.GetOptions{})
	})
	return t, err
}

// held are the CatalogWorkloads of a catalog. Those of an earlier one of the same name are not.
func (k *keeper) held(ctx context.Context, catalog *v1alpha1.AppCatalog) (map[reference]*v1alpha1.CatalogWorkload, error) {
	selector := labels.SelectorFromSet(labels.Set{v1alpha1.LabelCatalog: catalog.Name}).String()
	records, err := k.api.CatalogWorkloads(catalog.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("read its CatalogWorkloads: %w", err)
	}
	out := map[reference]*v1alpha1.CatalogWorkload{}
	for i := range records.Items {
		if record := &records.Items[i]; metav1.IsControlledBy(record, catalog) {
			out[reference{Kind: record.Status.Kind, Name: record.Status.Name}] = record
		}
	}
	return out, nil
}

// perform does what is left to do. A problem is recorded.
func (k *keeper) perform(ctx context.Context, t *task, seen sight) error {
	switch {
	case t.answered(t.catalog), over(t.record, t.catalog), k.refuses(t.catalog):
		return k.close(ctx, t, nil)
	case t.waits(t.catalog, t.record, k.clock.Now()):
		return k.wait(ctx, t, seen)
	}
	next, err := k.plan(ctx, t, seen)
	if err == nil {
		t.compared = !t.gathered
		t.changes = slices.Concat(t.changes, k.found(t, next, seen))
		err = k.commit(ctx, t, next)
	}
	if why := problemIn(err); why != nil {
		return k.fail(ctx, t, why)
	}
	if err == nil {
		k.obstacles.set(t.catalog.UID, verdict{})
		k.taken(t.catalog, next.hashes)
	}
	return err
}

// refuses says whether a catalog is of a source that is not followed. Its condition says so.
func (k *keeper) refuses(catalog *v1alpha1.AppCatalog) bool {
	reason := k.source(catalog.Spec.SourceNamespace).reason
	return reason == v1alpha1.ReasonSourceIsServer || reason == v1alpha1.ReasonSourceIsTarget
}

func (k *keeper) plan(ctx context.Context, t *task, seen sight) (plan, error) {
	if t.rollsBack(t.catalog, t.record) {
		return k.rollBack(ctx, t)
	}
	rules, err := capture.NewRules(&t.catalog.Spec)
	if err != nil {
		return plan{}, err
	}
	return newPlan(situation{
		catalog: t.catalog, rules: rules, held: t.held, seen: seen, now: k.clock.Now(),
		sourceOnly:  t.gathered && (unanswered(t.catalog) || stalled(t.catalog) && k.obstacles.get(t.catalog.UID).ok()),
		editPending: t.gathered && unanswered(t.catalog),
		begun:       begunToApply(t.record),
		preview:     t.catalog.Spec.PreviewOnly && !begunToApply(t.record),
	})
}

// commit writes a plan, in the order that the package's comment gives.
func (k *keeper) commit(ctx context.Context, t *task, next plan) error {
	record, err := k.tell(ctx, t, next)
	if err != nil {
		return err
	}
	for _, workload := range next.writes {
		if err := k.write(ctx, workload); err != nil {
			return err
		}
	}
	if record == nil || record.Status.Revision <= t.catalog.Status.Revision {
		return k.close(ctx, t, nil)
	}
	if err := k.revisions.Write(ctx, t.catalog, record.Status.Revision, next.entries, t.after(next)); err != nil {
		return err
	}
	return k.close(ctx, t, func(catalog *v1alpha1.AppCatalog) { advance(catalog, next.entries, record.Name, k.clock.Now()) })
}

// after are the CatalogWorkloads when a plan has been written.
func (t *task) after(next plan) map[reference]*v1alpha1.CatalogWorkload {
	out := maps.Clone(t.held)
	for _, record := range next.writes {
		out[reference{Kind: record.Status.Kind, Name: record.Status.Name}] = record
	}
	return out
}

// tell writes the record of a plan. It returns nil when there is nothing to tell, and never was.
func (k *keeper) tell(ctx context.Context, t *task, next plan) (*v1alpha1.SyncStatus, error) {
	if len(next.changes) == 0 && t.record == nil {
		return nil, nil
	}
	record, err := applied(t.catalog, t.occasion, next, t.record, t.name, k.clock.Now())
	if err != nil {
		return nil, err
	}
	if err := k.naming.name(ctx, t, next, record); err != nil {
		return nil, err
	}
	if err := k.put(ctx, t.record, record); err != nil {
		return nil, err
	}
	t.told = record
	if t.record == nil && t.gathered {
		recordSeconds.Observe(k.clock.Since(t.detected).Seconds())
	}
	return record, nil
}

// put writes a SyncStatus, and tells of the state that it comes to.
func (k *keeper) put(ctx context.Context, before, after *v1alpha1.SyncStatus) error {
	if err := k.write(ctx, after); err != nil {
		return err
	}
	k.unseen.wrote(after)
	if before == nil || before.Status.State != after.Status.State {
		recordsWritten.WithLabelValues(string(after.Status.State)).Inc()
		k.events.recorded(after)
	}
	return nil
}

// write writes a record, unless its namespace is going.
func (k *keeper) write(ctx context.Context, record runtime.Object) error {
	err := k.records.Write(ctx, record)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) || apierrors.IsNotFound(err) {
		return errGoing
	}
	if err != nil {
		return fmt.Errorf("write a record: %w", err)
	}
	return nil
}

// close ends an occasion: the status says what there is now, and what nothing refers to goes.
func (k *keeper) close(ctx context.Context, t *task, change func(*v1alpha1.AppCatalog)) error {
	changed := t.catalog.DeepCopy()
	if change != nil {
		change(changed)
	}
	if t.compared { // What has been dismissed before does not count any more: putAside asks since when the condition is true.
		meta.RemoveStatusCondition(&changed.Status.Conditions, v1alpha1.ConditionStalled)
	}
	answer(changed, t.occasion)
	return k.end(ctx, t, k.trouble(changed), changed)
}

// end writes the status with which an occasion that is answered ends.
func (k *keeper) end(ctx context.Context, t *task, trouble verdict, changed *v1alpha1.AppCatalog) error {
	setConditions(changed, k.source(changed.Spec.SourceNamespace), trouble, k.clock.Now())
	if err := k.writeStatus(ctx, t.catalog, changed); err != nil {
		return err
	}
	if t.told != nil && changed.Status.Revision > t.catalog.Status.Revision {
		k.events.advanced(changed, t.told)
		measureEdit(t.told, k.clock.Now())
		klog.FromContext(ctx).Info("Catalog has a new revision", "catalog", klog.KObj(changed), "revision", changed.Status.Revision,
			"workloads", t.told.Status.WorkloadCount, "authors", len(t.told.Status.ChangedBy), "actor", t.told.Status.Actor, "syncStatus", t.told.Name)
	}
	if err := k.sweep(ctx, t, changed); err != nil {
		return err
	}
	if t.generation == 0 && equality.Semantic.DeepEqual(t.catalog.Status.History, changed.Status.History) {
		return nil
	}
	return k.revisions.Prune(ctx, changed)
}

// writeStatus writes the status of a catalog if it has changed. A Conflict says that what was planned with is out of date.
func (k *keeper) writeStatus(ctx context.Context, before, after *v1alpha1.AppCatalog) error {
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	_, err := k.api.AppCatalogs(after.Namespace).UpdateStatus(ctx, after, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return errGoing
	}
	if err != nil {
		return fmt.Errorf("write its status: %w", err)
	}
	k.events.written(before, after)
	return nil
}

// sweep deletes the CatalogWorkloads that a catalog does not offer. While it only previews, they say what was seen.
func (k *keeper) sweep(ctx context.Context, t *task, catalog *v1alpha1.AppCatalog) error {
	if catalog.Spec.PreviewOnly {
		return nil
	}
	for _, entry := range catalog.Status.Workloads {
		delete(t.held, reference{Kind: entry.Kind, Name: entry.Name})
	}
	for _, record := range t.held {
		err := k.api.CatalogWorkloads(record.Namespace).Delete(ctx, record.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &record.UID, ResourceVersion: &record.ResourceVersion},
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete a CatalogWorkload that it does not offer: %w", err)
		}
	}
	return nil
}

// report brings the conditions of a catalog up to date.
func (k *keeper) report(ctx context.Context, of *v1alpha1.AppCatalog) error {
	told := of.DeepCopy()
	setConditions(told, k.source(told.Spec.SourceNamespace), k.trouble(told), k.clock.Now())
	if equality.Semantic.DeepEqual(of.Status, told.Status) {
		return nil
	}
	now, err := k.api.AppCatalogs(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && now.UID != of.UID:
		return nil
	case err != nil:
		return fmt.Errorf("read AppCatalog %s/%s: %w", of.Namespace, of.Name, err)
	}
	told = now.DeepCopy()
	setConditions(told, k.source(told.Spec.SourceNamespace), k.trouble(told), k.clock.Now())
	if err := k.writeStatus(ctx, now, told); err != nil && !errors.Is(err, errGoing) {
		return fmt.Errorf("report on AppCatalog %s/%s: %w", of.Namespace, of.Name, err)
	}
	return nil
}
