// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/labels"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// changed identifies an object in the source and in an environment.
type changed struct{ kind, name string }

// authors adds to the changes of a plan their authors in the source and the commits that hold them, from the records of
// the catalog between the environment's revision and the plan's, and from the open dependency record. A record of
// several objects does not attribute each of them, unless it has a single author.
func (p *plans) authors(
	ctx context.Context, environment *configbutler.Environment, catalog *configbutler.AppCatalog, plan *v1alpha1.SyncPlan,
) error {
	records, err := p.between(ctx, catalog, plan.FromRevision, plan.Revision)
	if err != nil {
		return err
	}
	if open := environment.Status.LatestDependencySync; open != "" {
		if record, err := getRecord(ctx, p.records, open); err == nil { // It may have been deleted.
			records = append(records, record)
		}
	}
	found := map[changed]*v1alpha1.SyncStatus{}
	for _, record := range records {
		addOrigins(found, record)
	}
	for i := range plan.Changes {
		change := &plan.Changes[i]
		if origin := found[changed{change.Kind, change.Name}]; origin != nil {
			change.ChangedBy, change.Commits = origin.Status.ChangedBy, origin.Status.Commits
		}
	}
	return nil
}

// addOrigins adds the authors and commits that a record attributes to each of its objects.
func addOrigins(found map[changed]*v1alpha1.SyncStatus, record *v1alpha1.SyncStatus) {
	alone := len(record.Status.ResourceSummaries) == 1
	for _, summary := range record.Status.ResourceSummaries {
		key := changed{summary.Type, summary.Name}
		if found[key] == nil {
			found[key] = &v1alpha1.SyncStatus{}
		}
		if by := record.Status.ChangedBy; alone || len(by) == 1 {
			syncstatus.AddAuthors(found[key], withoutCounts(by))
		}
		if commits := record.Status.Commits; alone || len(commits) == 1 {
			syncstatus.AddCommits(found[key], commits)
		}
	}
}

// withoutCounts returns authors without the number of workloads that they changed.
func withoutCounts(authors []v1alpha1.SourceAuthor) []v1alpha1.SourceAuthor {
	out := make([]v1alpha1.SourceAuthor, len(authors))
	for i, author := range authors {
		author.Workloads = 0
		out[i] = author
	}
	return out
}

// between returns the records of a catalog's revisions after one and up to another.
func (p *plans) between(ctx context.Context, catalog *configbutler.AppCatalog, after, upTo int64) ([]*v1alpha1.SyncStatus, error) {
	if after >= upTo {
		return nil, nil
	}
	selector := labels.SelectorFromSet(labels.Set{
		v1alpha1.LabelCatalog: catalog.Name, v1alpha1.LabelSyncType: string(v1alpha1.SyncTypeCatalog),
	})
	list, err := listRecords(genericapirequest.WithNamespace(ctx, catalog.Namespace), p.records, selector)
	if err != nil {
		return nil, err
	}
	var records []*v1alpha1.SyncStatus
	for i := range list.Items {
		item := &list.Items[i]
		if status := &item.Status; item.Spec.Subject.UID != catalog.UID || status.Preview || status.Revision <= after || status.Revision > upTo {
			continue
		}
		record, err := versioned(item)
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}

// listRecords lists the SyncStatuses with matching labels in the namespace of ctx.
func listRecords(ctx context.Context, records *genericregistry.Store, selector labels.Selector) (*configbutler.SyncStatusList, error) {
	obj, err := records.List(ctx, &internalversion.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	list, ok := obj.(*configbutler.SyncStatusList)
	if !ok {
		return nil, fmt.Errorf("got a %T instead of a list of SyncStatuses", obj)
	}
	return list, nil
}
