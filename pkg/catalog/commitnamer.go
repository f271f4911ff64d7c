// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/catalog/commits"
	"github.com/configbutler/slipstream/pkg/history"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// commitNamer looks up the commits that contain the changes of records. It is nil, and does nothing, if no mirror runs in the process.
type commitNamer struct {
	history *history.History
	waiting *commits.Waiting

	mu sync.Mutex
	// namespaces are the source namespaces.
	namespaces sets.Set[string]
	// scanned are the namespaces whose waiting records have all been looked up since the start.
	scanned sets.Set[string]
	// pushed are the objects with new commits since the last scan, by namespace.
	pushed map[string]sets.Set[history.Object]
}

func newCommitNamer(source *history.History, store *table.Store, clock clock.WithTicker) *commitNamer {
	if source == nil {
		return nil
	}
	return &commitNamer{
		history: source, waiting: commits.NewWaiting(store.Table(commits.TableName), clock),
		scanned: sets.New[string](), pushed: map[string]sets.Set[history.Object]{},
	}
}

// setNamespaces sets the source namespaces. Commits in other namespaces are ignored.
func (n *commitNamer) setNamespaces(namespaces []string) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.namespaces = sets.New(namespaces...)
	maps.DeleteFunc(n.pushed, func(namespace string, _ sets.Set[history.Object]) bool { return !n.namespaces.Has(namespace) })
}

// run enqueues the namespaces of objects with new commits, until ctx ends.
func (n *commitNamer) run(ctx context.Context, enqueue func(namespace string)) {
	if n == nil {
		return
	}
	workloads := sets.New(slices.Collect(maps.Values(v1alpha1.WorkloadResources()))...)
	cancel := n.history.Subscribe(func(object history.Object) {
		if workloads.Has(object.GroupResource) && n.add(object) {
			enqueue(object.Namespace)
		}
	})
	defer cancel()
	<-ctx.Done()
}

// add records that there is a new commit of an object. It returns false if the object is not in a source namespace.
func (n *commitNamer) add(object history.Object) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.namespaces.Has(object.Namespace) {
		return false
	}
	if n.pushed[object.Namespace] == nil {
		n.pushed[object.Namespace] = sets.New[history.Object]()
	}
	n.pushed[object.Namespace].Insert(object)
	return true
}

// startScan returns which spans of a namespace have to be looked up since the last scan. needed is false if there are none. The caller
// must call rescan if it fails.
func (n *commitNamer) startScan(namespace string) (concerned func(commits.Span) bool, needed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	pushed := n.pushed[namespace]
	delete(n.pushed, namespace)
	if !n.scanned.Has(namespace) {
		n.scanned.Insert(namespace)
		return func(commits.Span) bool { return true }, true
	}
	return func(span commits.Span) bool { return pushed.Has(span.Object) }, pushed.Len() > 0
}

// rescan makes the next scan of a namespace look up all spans.
func (n *commitNamer) rescan(namespace string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.scanned.Delete(namespace)
}

// addCommits adds the pushed commits to a record that is about to be written, and stores the spans of the record to look up later commits.
func (n *commitNamer) addCommits(ctx context.Context, t *task, next plan, record *v1alpha1.SyncStatus) error {
	if n == nil {
		return nil
	}
	spans, err := n.waiting.Expect(ctx, t.catalog.Spec.SourceNamespace, record, t.trigger.startSpans(next.spans))
	if err != nil {
		return err
	}
	changes, err := n.lookup(ctx, spans)
	if found := commitsOf(spans, changes); len(found) > 0 {
		syncstatus.AddCommits(record, found)
	}
	return err
}

// lookup returns the Changes of the objects of spans.
func (n *commitNamer) lookup(ctx context.Context, spans []commits.Span) (map[history.Object][]v1alpha1.Change, error) {
	if len(spans) == 0 {
		return nil, nil
	}
	objects := sets.New[history.Object]()
	for _, span := range spans {
		objects.Insert(span.Object)
	}
	return n.history.Lookup(ctx, objects.UnsortedList()...)
}

// commitsOf returns the commits that contain the changes of spans, newest first.
func commitsOf(spans []commits.Span, changes map[history.Object][]v1alpha1.Change) []v1alpha1.MirroredCommit {
	var matching []commits.Entry
	for _, span := range spans {
		matching = append(matching, span.Match(commits.EntriesOf(changes[span.Object]))...)
	}
	slices.SortFunc(matching, func(a, b commits.Entry) int { return b.Compare(a) })
	out := make([]v1alpha1.MirroredCommit, len(matching))
	for i, entry := range matching {
		out[i] = entry.Commit
	}
	return out
}

// addPushedCommits adds the commits that were pushed since the last call to the written records of a namespace.
func (u *updater) addPushedCommits(ctx context.Context, namespace string) error {
	if u.namer == nil {
		return nil
	}
	concerned, needed := u.namer.startScan(namespace)
	if !needed {
		return nil
	}
	var errs []error
	var records []commits.Record
	var spans []commits.Span
	for waiting, err := range u.namer.waiting.In(ctx, namespace) {
		if err == nil && slices.ContainsFunc(waiting.Spans, concerned) {
			records, spans = append(records, waiting), append(spans, waiting.Spans...)
		}
		errs = append(errs, err)
	}
	changes, err := u.namer.lookup(ctx, spans) // at once, because it reads the whole index
	errs = append(errs, err)
	for _, waiting := range records {
		errs = append(errs, u.addCommitsTo(ctx, waiting, commitsOf(waiting.Spans, changes)))
	}
	err = utilerrors.NewAggregate(errs)
	if err != nil {
		u.namer.rescan(namespace)
	}
	return err
}

// addCommitsTo adds the pushed commits to one written record. A failed record is skipped: it gets its commits when it is applied.
func (u *updater) addCommitsTo(ctx context.Context, waiting commits.Record, found []v1alpha1.MirroredCommit) error {
	if len(found) == 0 {
		return nil
	}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		record, err := u.api.SyncStatuses(waiting.Name.Namespace).Get(ctx, waiting.Name.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("read a record that waits for commits: %w", err)
		case record.Spec.Batch != waiting.Batch || failed(record):
			return nil
		}
		amended := record.DeepCopy()
		syncstatus.AddCommits(amended, found)
		if equality.Semantic.DeepEqual(record.Status.Commits, amended.Status.Commits) {
			return nil
		}
		return u.write(ctx, amended)
	})
	switch {
	case errors.Is(err, errDeleting):
		return nil
	case apierrors.IsInvalid(err):
		// A retry would fail as well, and must not delay other updates.
		klog.FromContext(ctx).Error(err, "Failed to add commits to SyncStatus", "syncStatus", waiting.Name)
		return nil
	}
	return err
}
