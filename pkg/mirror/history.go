// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/history"
	"github.com/configbutler/slipstream/pkg/mirror/blobcache"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// History is the history as the mirror writes it.
type History interface {
	// Prepare stores the Changes of a push before it is sent.
	Prepare(ctx context.Context, tip string, changes []v1alpha1.ChangeSpec) error
	// Record publishes the Changes of a push that the remote has accepted. It is called at least once for each, and Discard after it has
	// succeeded.
	Record(ctx context.Context, tip string) error
	// Discard deletes the prepared Changes of a push that the remote has rejected, or that are recorded.
	Discard(ctx context.Context, tip string) error
}

var _ History = &history.History{}

// maxSubject is the number of bytes stored of the first line of a commit's message.
const maxSubject = 512

// changeOperations are the operations of Changes that a watch has delivered.
var changeOperations = map[v1alpha1.Operation]v1alpha1.ChangeOperation{
	v1alpha1.OperationCreate: v1alpha1.ChangeCreate,
	v1alpha1.OperationUpdate: v1alpha1.ChangeUpdate,
	v1alpha1.OperationDelete: v1alpha1.ChangeDelete,
}

// describe returns the Changes of a commit that is about to be staged, without what only the commit has. changes are the changes of
// group g that have an effect. A sweep has no Changes, because it knows no change of an object.
func (s *stager) describe(m member, g group, changes []outbox.Change, seed bool) []v1alpha1.ChangeSpec {
	if s.history == nil {
		return nil
	}
	specs := make([]v1alpha1.ChangeSpec, len(changes))
	combined := combine(g.changes)
	for i, change := range changes {
		object, all := change.Object, combined[change.Path]
		specs[i] = v1alpha1.ChangeSpec{
			Object: v1alpha1.ChangedObject{
				APIVersion: object.GroupVersionResource().GroupVersion().String(), Kind: change.Kind, Resource: object.Resource,
				Namespace: object.Namespace, Name: object.Name, UID: change.ObjectUID,
			},
			Operation: changeOperations[change.Operation], Time: metav1.NewMicroTime(change.Time),
			ResourceVersions: v1alpha1.ChangedVersions{Last: change.ResourceVersion},
			Author:           authorOf(change.Author), FieldManager: change.Author.Manager,
			ManagedBy: change.Marks.ManagedBy, Bypass: all.bypass,
		}
		if seed {
			specs[i].Operation = v1alpha1.ChangeCompared
		} else {
			specs[i].ResourceVersions.First = all.first
		}
		commit := v1alpha1.ChangeCommit{
			DestinationRef: v1alpha1.NamespacedObjectReference{Namespace: m.destination.key.Namespace, Name: m.destination.key.Name},
			Path:           m.plan.file(change.Path),
		}
		before, exists := s.remote.tree().Lookup(commit.Path)
		if exists {
			commit.BlobBefore = before.String()
		}
		s.memory.describe(&specs[i], change, before)
		specs[i].Commits = []v1alpha1.ChangeCommit{commit}
	}
	return specs
}

// combination is what the changes of one file in a commit have in common.
type combination struct {
	// first is the resourceVersion of the first one.
	first string
	// bypass is set if one of them bypasses what manages the object.
	bypass bool
}

// combine returns the combinations of changes by the paths of their files.
func combine(changes []outbox.Change) map[string]combination {
	combined := make(map[string]combination, len(changes))
	for _, change := range changes {
		all, found := combined[change.Path]
		if !found {
			all.first = change.ResourceVersion
		}
		all.bypass = all.bypass || isBypass(change)
		combined[change.Path] = all
	}
	return combined
}

// authorOf returns the author of a change; nil if no user is known.
func authorOf(author attribution.Author) *v1alpha1.ChangeAuthor {
	if !author.Known() {
		return nil
	}
	signal := v1alpha1.SignalAdmission
	if author.Signal == attribution.Audit {
		signal = v1alpha1.SignalAudit
	}
	return &v1alpha1.ChangeAuthor{Username: author.Username, Signal: string(signal)}
}

// complete adds the commit to its Changes, once it is staged, and remembers their files.
func (s *stager) complete(specs []v1alpha1.ChangeSpec, changes []outbox.Change, m member, hash gitrepo.Hash, commit gitrepo.Commit) {
	subject := shortened(subjectOf(commit), maxSubject)
	noted := make([]blobcache.Noted, 0, len(specs))
	for i := range specs {
		of := &specs[i].Commits[0]
		of.SHA, of.Message, of.URL = hash.String(), subject, commitURL(m.plan, hash)
		of.Time = metav1.NewTime(commit.Committer.When.Truncate(time.Second))
		after, exists := s.remote.tree().Lookup(of.Path)
		if exists {
			of.BlobAfter = after.String()
		}
		if exists && changes[i].Operation != v1alpha1.OperationDelete {
			noted = append(noted, notedFile(changes[i], after))
		}
	}
	s.memory.remember(noted...)
}
