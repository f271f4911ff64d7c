// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// batch is what one push carries of one destination.
type batch struct {
	member member
	// rows are the rows that the push removes from the outbox, superseded ones included.
	rows   []outbox.Row
	pushed pushed
	// listed is how far each scope was compared once the batch is on the branch.
	listed map[kubewatch.Watch]position
}

// carried returns the number of changes in batches, superseded ones included.
func carried(batches []*batch) (changes int) {
	for _, b := range batches {
		changes += max(len(b.rows), b.pushed.written+b.pushed.removed)
	}
	return changes
}

// pushed is the result of a push for one destination.
type pushed struct {
	last             gitrepo.Hash
	subject          string
	commits          int
	written, removed int
	bytes            int
	// changes are the Changes of the commits.
	changes []v1alpha1.ChangeSpec
	// traced are the changes in the commits whose traces are sampled.
	traced []tracedChange
	// authors counts the changes by the source of their attribution.
	authors v1alpha1.AttributionCounts
	// files is the change in the number of files of each type; found has the numbers of files written and removed.
	files map[schema.GroupVersionResource]int64
	found map[schema.GroupVersionResource]found
	// unappliable counts the files that server-side apply cannot restore; firstUnappliable is the object of the first.
	unappliable      int
	firstUnappliable outbox.Object
}

func (s *pushed) add(hash gitrepo.Hash, subject string, changes []outbox.Change) {
	s.last, s.subject = hash, subject
	s.commits++
	if s.files == nil {
		s.files, s.found = map[schema.GroupVersionResource]int64{}, map[schema.GroupVersionResource]found{}
	}
	for _, change := range changes {
		countAuthor(&s.authors, change.Author)
		t := change.Object.GroupVersionResource()
		of := s.found[t]
		switch change.Operation {
		case v1alpha1.OperationDelete:
			s.removed++
			s.files[t]--
			of.removed++
		case v1alpha1.OperationCreate:
			s.files[t]++
			fallthrough
		default:
			s.written++
			of.written++
			s.bytes += len(change.Content)
			s.judge(change)
		}
		s.found[t] = of
	}
}

// rename replaces the hashes of commits that were put on another one. Those that the remote had accepted before keep theirs.
func (s *pushed) rename(renamed map[gitrepo.Hash]gitrepo.Hash) {
	if after, found := renamed[s.last]; found {
		s.last = after
	}
	names := make(map[string]string, len(renamed))
	for before, after := range renamed {
		names[before.String()] = after.String()
	}
	for i := range s.traced {
		if after, found := renamed[s.traced[i].commit]; found {
			s.traced[i].commit = after
		}
	}
	for i := range s.changes {
		of := &s.changes[i].Commits[0]
		if after, found := names[of.SHA]; found {
			of.SHA, of.URL = after, strings.ReplaceAll(of.URL, of.SHA, after)
		}
	}
}

// judge counts a file that server-side apply cannot restore.
func (s *pushed) judge(change outbox.Change) {
	if manifest.IsAppliable(change.Content) {
		return
	}
	if s.unappliable == 0 {
		s.firstUnappliable = change.Object
	}
	s.unappliable++
}

// warning returns the warning for users who restore from the files; empty if there is none.
func (s *pushed) warning() string {
	const why = "characters that kubectl apply --server-side refuses or changes (U+007F to U+009F, U+FFFE, " +
		"U+FFFF): apply the files that say so without it"
	switch s.unappliable {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("%s has %s", s.firstUnappliable, why)
	}
	return fmt.Sprintf("%s and %d more have %s", s.firstUnappliable, s.unappliable-1, why)
}

// log logs the result of a push for a destination.
func (b *batch) log(ctx context.Context, took time.Duration) {
	if b.pushed.commits == 0 {
		return
	}
	authors := &b.pushed.authors
	klog.FromContext(ctx).Info("Pushed", "destination", b.member.destination.key, "commits", b.pushed.commits, "written", b.pushed.written,
		"removed", b.pushed.removed, "last", b.pushed.last.String(), "audit", authors.Audit, "admission", authors.Admission,
		"managedFields", authors.ManagedFields, "unknownAuthor", authors.Unknown, "took", took.Round(time.Millisecond).String())
}

// count adds an accepted push to the metrics.
func count(p pushed) {
	commits.Add(float64(p.commits))
	commitBytes.Add(float64(p.bytes))
	objectsWritten.Add(float64(p.written))
	filesDeleted.Add(float64(p.removed))
}
