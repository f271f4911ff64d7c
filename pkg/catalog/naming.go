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

// naming has records name the commits that hold what they tell of. Where nothing is mirrored it is nil, and does nothing.
type naming struct {
	index   *commitindex.Index
	waiting *commits.Waiting

	mu sync.Mutex
	// looked are the namespaces whose records have been looked through since the start. Of them, landed are the objects of
	// which something has landed since.
	looked sets.Set[string]
	landed map[string]sets.Set[commitindex.Object]
}

func newNaming(index *commitindex.Index, store *table.Store, clock clock.WithTicker) *naming {
	if index == nil {
		return nil
	}
	return &naming{
		index: index, waiting: commits.NewWaiting(store.Table(commits.TableName), clock),
		looked: sets.New[string](), landed: map[string]sets.Set[commitindex.Object]{},
	}
}

// follow says which namespaces are the sources of catalogs.
func (n *naming) follow(namespaces []string) {
	if n != nil {
		resources := slices.Collect(maps.Values(v1alpha1.WorkloadResources()))
		n.index.SetScope(commitindex.Scope{Resources: resources, Namespaces: namespaces})
	}
}

// run has namespaces looked at in which something has landed, until ctx ends.
func (n *naming) run(ctx context.Context, look func(namespace string)) {
	if n == nil {
		return
	}
	n.index.Run(ctx, func(objects []commitindex.Object) {
		for _, object := range objects {
			n.note(object)
			look(object.Namespace)
		}
	})
}

func (n *naming) note(object commitindex.Object) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.landed[object.Namespace] == nil {
		n.landed[object.Namespace] = sets.New[commitindex.Object]()
	}
	n.landed[object.Namespace].Insert(object)
}

// news says which spans of a namespace are to be looked at again, if any. Who fails to says again.
func (n *naming) news(namespace string) (concerned func(commits.Span) bool, some bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	landed := n.landed[namespace]
	delete(n.landed, namespace)
	if !n.looked.Has(namespace) {
		n.looked.Insert(namespace)
		return func(commits.Span) bool { return true }, true
	}
	return func(span commits.Span) bool { return landed.Has(span.Object) }, landed.Len() > 0
}

func (n *naming) again(namespace string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.looked.Delete(namespace)
}

// name has a record that is about to be written name the commits that have landed, and wait for those that have not.
func (n *naming) name(ctx context.Context, t *task, next plan, record *v1alpha1.SyncStatus) error {
	if n == nil {
		return nil
	}
	spans, err := n.waiting.Expect(ctx, t.catalog.Spec.SourceNamespace, record, t.begin(next.spans))
	if err != nil {
		return err
	}
	found, err := n.held(ctx, spans)
	if err == nil && len(found) > 0 {
		syncstatus.AddCommits(record, found)
	}
	return err
}

// held are the commits that hold what spans tell of, the newest first.
func (n *naming) held(ctx context.Context, spans []commits.Span) ([]v1alpha1.MirroredCommit, error) {
	var held []commitindex.Entry
	for _, span := range spans {
		landings, err := n.index.Lookup(ctx, span.Object)
		if err != nil {
			return nil, err
		}
		held = append(held, span.Match(landings)...)
	}
	slices.SortFunc(held, func(a, b commitindex.Entry) int { return b.Compare(a) })
	out := make([]v1alpha1.MirroredCommit, len(held))
	for i, one := range held {
		out[i] = mirrored(one.Commit)
	}
	return out, nil
}

// mirrored is a commit as records name one.
func mirrored(commit commitindex.Commit) v1alpha1.MirroredCommit {
	return v1alpha1.MirroredCommit{
		CommitSummary:  v1alpha1.CommitSummary{SHA: commit.SHA, Time: *seconds(commit.Time), Message: commit.Message, URL: commit.URL},
		DestinationRef: v1alpha1.NamespacedObjectReference{Namespace: commit.Destination.Namespace, Name: commit.Destination.Name},
	}
}

// nameLanded has the records of a namespace name what has landed since they were looked at.
func (k *keeper) nameLanded(ctx context.Context, namespace string) error {
	if k.naming == nil {
		return nil
	}
	concerned, some := k.naming.news(namespace)
	if !some {
		return nil
	}
	var errs []error
	for waiting, err := range k.naming.waiting.In(ctx, namespace) {
		if err == nil && slices.ContainsFunc(waiting.Spans, concerned) {
			err = k.amend(ctx, waiting)
		}
		errs = append(errs, err)
	}
	err := utilerrors.NewAggregate(errs)
	if err != nil {
		k.naming.again(namespace)
	}
	return err
}

// amend has a record name the commits that hold what it tells of. One that has failed names them when it is applied.
func (k *keeper) amend(ctx context.Context, waiting commits.Record) error {
	found, err := k.naming.held(ctx, waiting.Spans)
	if err != nil || len(found) == 0 {
		return err
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		record, err := k.api.SyncStatuses(waiting.Name.Namespace).Get(ctx, waiting.Name.Name, metav1.GetOptions{})
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
		return k.write(ctx, amended)
	})
	switch {
	case errors.Is(err, errGoing):
		return nil
	case apierrors.IsInvalid(err):
		// No attempt would do better, and nothing else is to wait for it.
		klog.FromContext(ctx).Error(err, "Commits cannot be named", "syncStatus", waiting.Name)
		return nil
	}
	return err
}
