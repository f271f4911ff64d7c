// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/failpoint"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/pkg/store/commitindex"
)

// busyInterval is the minimum time between pushes while changes keep arriving and pushes carry several. A Git server starts
// half a dozen processes for each push, and writes the objects of small pushes as single files.
const busyInterval = 250 * time.Millisecond

// Limits bound batches and concurrency.
type Limits struct {
	// MaxFiles (--git-batch-max-files, 200) and MaxBytes (--git-batch-max-bytes-mib, 1 MiB)
	// bound one batch. A full batch is pushed at once.
	MaxFiles int
	MaxBytes int
	// MaxWait (--git-batch-max-wait-sec, 20 s) bounds how long a change waits to be batched with others.
	MaxWait time.Duration
	// Workers (--workers-max-global, 24) bounds how many branches are written at once,
	// WorkersPerRepository (--workers-max-per-repo, 5) how many of one repository URL.
	Workers              int
	WorkersPerRepository int
	// RemoteMemory (--git-max-memory-mib, 256 MiB) is how many bytes one operation on a remote may hold.
	RemoteMemory int64
}

// batch is what one push carries of one destination.
type batch struct {
	member member
	// rows are the rows that the push removes from the outbox, superseded ones included.
	rows   []outbox.Row
	pushed pushed
	// listed is the resourceVersion of each list of the comparisons that end with the batch.
	listed map[kubewatch.Watch]string
}

// compared returns the scopes that the batch brings to the state of a list.
func (b *batch) compared() (scopes []comparedScope) {
	for watch, resourceVersion := range b.listed {
		scopes = append(scopes, comparedScope{UID: b.member.destination.uid, Watch: watch, ResourceVersion: resourceVersion, Time: time.Now()})
	}
	return scopes
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
	// landings are the commits of the objects that the commit index tracks.
	landings []commitindex.Entry
	// authors counts the changes by the source of their attribution.
	authors v1alpha1.AttributionCounts
	// files is the change in the number of files of each type; found has the numbers of files written and removed.
	files map[schema.GroupVersionResource]int64
	found map[schema.GroupVersionResource]found
	// unappliable counts the files that server-side apply cannot restore; firstUnappliable is the object of the first.
	unappliable      int
	firstUnappliable outbox.Object
}

// pushWaiting pushes the rows that are in the outbox when it is called, unless they are held back to be batched.
func (w *worker) pushWaiting(ctx context.Context, members []member) error {
	for pending := backlogOf(members).Rows; pending > 0 && !w.batching.holds(members); {
		started := time.Now()
		settled, err := w.pushRows(ctx, members)
		if err != nil {
			return err
		}
		pending -= settled
		w.batching.pushed(members, settled, time.Since(started))
	}
	return nil
}

// pushRows pushes the oldest rows of every member, as many as one push carries, and returns their number. Members that are
// pushed separately come last.
func (w *worker) pushRows(ctx context.Context, members []member) (settled int, err error) {
	w.first++
	for _, group := range w.refusals.groups(members) {
		n, err := w.pushTogether(ctx, members, group)
		settled += n
		if err != nil {
			return settled, err
		}
		if err := w.slot.giveWay(ctx); err != nil {
			return settled, err
		}
	}
	return settled, nil
}

// pushTogether pushes the oldest rows of some of the members in one push.
func (w *worker) pushTogether(ctx context.Context, all, members []member) (settled int, err error) {
	room, size, commits := w.race.bound(w.services.limits.MaxFiles), w.services.limits.MaxBytes, maxCommits(members[0])
	var batches []*batch
	for i := range members {
		// Members go first in rotation, so that a busy one does not starve the others.
		m := members[(w.first+i)%len(members)]
		if room <= 0 || size <= 0 || commits <= 0 {
			break
		}
		counted := m.destination.queue.Counted()
		rows, err := w.services.outbox.Next(ctx, m.destination.uid, room, size)
		if err != nil {
			return 0, err
		}
		if len(rows) == 0 {
			m.destination.queue.Gone(counted)
			continue
		}
		b := &batch{member: m}
		if err := w.stageRows(b, rows, commits); err != nil {
			return 0, err
		}
		room -= len(b.rows)
		for _, row := range b.rows {
			size -= len(row.Change.Content)
		}
		commits -= b.pushed.commits
		settled += len(b.rows)
		batches = append(batches, b)
	}
	return settled, w.push(ctx, all, batches)
}

// maxCommits returns the maximum number of commits of one push. It is the same for all members, because a branch belongs to
// one repository configuration.
func maxCommits(m member) int {
	if policy := m.plan.repository.Spec.Push; policy != nil && policy.MaxCommits != nil {
		return int(*policy.MaxCommits)
	}
	return math.MaxInt
}

// stageRows stages commits of rows that are not superseded, up to a number of commits. The other rows stay for the next
// push.
func (w *worker) stageRows(b *batch, rows []outbox.Row, commits int) error {
	var changes []outbox.Change
	var place []int // index of each change in rows
	for i, row := range rows {
		if !b.member.destination.seeds.superseded(row.Change.Object, row.Change.ResourceVersion) && !b.member.destination.outdated(row.Change) {
			changes, place = append(changes, row.Change), append(place, i)
		}
	}
	staged := 0
	for _, g := range groupChanges(b.member.plan.object.Spec.Granularity, changes) {
		if b.pushed.commits >= commits {
			b.rows = rows[:place[staged]]
			return nil
		}
		if err := w.stage(b.member, g, false, &b.pushed); err != nil {
			return err
		}
		staged += len(g.changes)
	}
	b.rows = rows
	return nil
}

// stage stages a commit of those changes that change a file.
func (w *worker) stage(m member, g group, seed bool, sum *pushed) error {
	p := m.plan
	changes := w.effective(p, g.final())
	if len(changes) == 0 {
		return nil
	}
	files := make([]gitrepo.Change, 0, len(changes))
	for _, change := range changes {
		files = append(files, gitrepo.Change{Path: p.file(change.Path), Content: change.Content})
	}
	commit := w.remote.wording.commit(m.destination.key, g.author, changes, seed)
	hash, staged, err := w.stageFiles(m, &commit, files)
	if err != nil {
		return err
	}
	if staged {
		sum.add(hash, subjectOf(commit), changes)
		sum.landings = append(sum.landings, w.landings(m, hash, commit, g, changes, seed)...)
	}
	return nil
}

// stageFiles stages a commit of files, with the marker if the folder needs one.
func (w *worker) stageFiles(m member, commit *gitrepo.Commit, files []gitrepo.Change) (hash gitrepo.Hash, staged bool, err error) {
	marker, needed, err := w.markers.markerFor(w.remote.tree(), m)
	if err != nil {
		return hash, false, err
	}
	if needed {
		files = append(files, marker)
	}
	commit.Changes, commit.Sign = files, w.remote.sign
	if hash, staged, err = w.remote.branch.Stage(*commit); err != nil {
		return hash, false, &rejectedError{fmt.Errorf("make a commit: %w", err), []member{m}}
	}
	return hash, staged, nil
}

// effective returns the changes that change a file of the branch, with their operation set to create or update.
func (w *worker) effective(p *destinationPlan, changes []outbox.Change) []outbox.Change {
	tree := w.remote.tree()
	var effective []outbox.Change
	for _, change := range changes {
		hash, exists := tree.Lookup(p.file(change.Path))
		switch {
		case change.Operation == v1alpha1.OperationDelete:
			if !exists {
				continue
			}
		case exists && hash == gitrepo.BlobHash(change.Content):
			continue
		case exists:
			change.Operation = v1alpha1.OperationUpdate
		default:
			change.Operation = v1alpha1.OperationCreate
		}
		effective = append(effective, change)
	}
	return effective
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
	const why = "characters that kubectl apply --server-side refuses or changes (U+007F to U+009F, U+FFFE, U+FFFF): apply the files that say so without it"
	switch s.unappliable {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("%s has %s", s.firstUnappliable, why)
	}
	return fmt.Sprintf("%s and %d more have %s", s.firstUnappliable, s.unappliable-1, why)
}

// push writes a note of the staged commits, pushes them, and removes the rows once the remote has accepted them. After an
// error the rows remain.
func (w *worker) push(ctx context.Context, members []member, batches []*batch) error {
	began := time.Now()
	note := &pushNote{Through: map[types.UID]uint64{}}
	var landings []commitindex.Entry
	for _, b := range batches {
		if b.pushed.commits > 0 {
			note.Tip = b.pushed.last
		}
		if n := len(b.rows); n > 0 {
			note.Through[b.member.destination.uid] = b.rows[n-1].Sequence
		}
		note.Compares = append(note.Compares, b.compared()...)
		landings = append(landings, b.pushed.landings...)
	}
	failpoint.Reach("commits-staged")
	sent := !note.Tip.IsZero()
	if sent {
		w.race.carried = carried(batches)
		err := w.lease.during(ctx, func(ctx context.Context) error { return w.send(ctx, note, landings) })
		for _, m := range members {
			m.destination.record.leased(w.lease.holder)
		}
		if err != nil {
			return rejectedPush(err, batches)
		}
		w.race.won()
		w.pushes.compared = append(w.pushes.compared, note.Compares...)
		w.folders.record(w.remote.tree(), members)
		publishTree(w.remote.tree(), members)
		for _, b := range batches {
			b.member.destination.record.pushed(b.pushed)
			b.member.destination.record.owned(w.markers.ownership(w.remote.tree(), b.member))
			count(b.pushed)
			if warning := b.pushed.warning(); warning != "" {
				w.services.event(b.member.plan.object, corev1.EventTypeWarning, reasonNotAppliable, warning)
			}
			b.log(ctx, time.Since(began))
		}
		if err := w.pushes.accepted(ctx, *note); err != nil {
			return err // recoverPushes finds the push and records it then.
		}
	}
	for _, b := range batches {
		if err := removeRows(ctx, w.services.outbox, b.member.destination, b.rows); err != nil {
			return err
		}
	}
	failpoint.Reach("rows-removed")
	if sent {
		w.pushes.doubts = nil // The branch has moved past the base of each.
	}
	w.services.changed()
	return nil
}

// send pushes the staged commits.
func (w *worker) send(ctx context.Context, note *pushNote, landings []commitindex.Entry) error {
	if err := w.pushes.prepare(ctx, w.remote.branch.Tip(), note, landings); err != nil {
		return err
	}
	failpoint.Reach("push-noted")
	if _, err := w.remote.branch.Push(ctx); err != nil {
		return w.pushes.failed(ctx, *note, err)
	}
	failpoint.Reach("pushed")
	commitBatches.Inc()
	return nil
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

// removeRows removes rows that need no push any more from the outbox and the queue of their destination.
func removeRows(ctx context.Context, from *outbox.Outbox, d *destination, rows []outbox.Row) error {
	if err := from.Remove(ctx, rows); err != nil {
		return err
	}
	for _, seen := range d.queue.Removed(rows) {
		pushSeconds.Observe(time.Since(seen).Seconds())
	}
	return nil
}
