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
	"github.com/configbutler/slipstream/pkg/store/commitindex"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// commitNamer looks up the commits that contain the changes of records. It is nil, and does nothing, if no mirror runs in the process.
type commitNamer struct {
	index   *commitindex.Index
	waiting *commits.Waiting

	mu sync.Mutex
	// scanned are the namespaces whose waiting records have all been looked up since the start.
	scanned sets.Set[string]
	// pushed are the objects with new commits since the last scan, by namespace.
	pushed map[string]sets.Set[commitindex.Object]
}

func newCommitNamer(index *commitindex.Index, store *table.Store, clock clock.WithTicker) *commitNamer {
	if index == nil {
		return nil
	}
	return &commitNamer{
		index: index, waiting: commits.NewWaiting(store.Table(commits.TableName), clock),
		scanned: sets.New[string](), pushed: map[string]sets.Set[commitindex.Object]{},
	}
}

// setNamespaces restricts the commit index to the workloads of the source namespaces.
func (n *commitNamer) setNamespaces(namespaces []string) {
	if n != nil {
		resources := slices.Collect(maps.Values(v1alpha1.WorkloadResources()))
		n.index.SetScope(commitindex.Scope{Resources: resources, Namespaces: namespaces})
	}
}

// run enqueues the namespaces of objects with new commits, until ctx ends.
func (n *commitNamer) run(ctx context.Context, enqueue func(namespace string)) {
	if n == nil {
		return
	}
	n.index.Run(ctx, func(objects []commitindex.Object) {
		for _, object := range objects {
			n.add(object)
			enqueue(object.Namespace)
		}
	})
}

// add records that there is a new commit of an object.
func (n *commitNamer) add(object commitindex.Object) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pushed[object.Namespace] == nil {
		n.pushed[object.Namespace] = sets.New[commitindex.Object]()
	}
	n.pushed[object.Namespace].Insert(object)
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
	found, err := n.lookup(ctx, spans)
	if err == nil && len(found) > 0 {
		syncstatus.AddCommits(record, found)
	}
	return err
}

// lookup returns the commits that contain the changes of spans, newest first.
func (n *commitNamer) lookup(ctx context.Context, spans []commits.Span) ([]v1alpha1.MirroredCommit, error) {
	var matching []commitindex.Entry
	for _, span := range spans {
		entries, err := n.index.Lookup(ctx, span.Object)
		if err != nil {
			return nil, err
		}
		matching = append(matching, span.Match(entries)...)
	}
	slices.SortFunc(matching, func(a, b commitindex.Entry) int { return b.Compare(a) })
	out := make([]v1alpha1.MirroredCommit, len(matching))
	for i, entry := range matching {
		out[i] = mirrored(entry.Commit)
	}
	return out, nil
}

// mirrored converts a commit to its form in records.
func mirrored(commit commitindex.Commit) v1alpha1.MirroredCommit {
	return v1alpha1.MirroredCommit{
		CommitSummary:  v1alpha1.CommitSummary{SHA: commit.SHA, Time: *seconds(commit.Time), Message: commit.Message, URL: commit.URL},
		DestinationRef: v1alpha1.NamespacedObjectReference{Namespace: commit.Destination.Namespace, Name: commit.Destination.Name},
	}
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
	for waiting, err := range u.namer.waiting.In(ctx, namespace) {
		if err == nil && slices.ContainsFunc(waiting.Spans, concerned) {
			err = u.addCommitsTo(ctx, waiting)
		}
		errs = append(errs, err)
	}
	err := utilerrors.NewAggregate(errs)
	if err != nil {
		u.namer.rescan(namespace)
	}
	return err
}

// addCommitsTo adds the pushed commits to one written record. A failed record is skipped: it gets its commits when it is applied.
func (u *updater) addCommitsTo(ctx context.Context, waiting commits.Record) error {
	found, err := u.namer.lookup(ctx, waiting.Spans)
	if err != nil || len(found) == 0 {
		return err
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
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
