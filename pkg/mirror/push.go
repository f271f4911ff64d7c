// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"text/template"
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/failpoint"
	"github.com/configbutler/slipstream/pkg/gitrepo"
)

// Limits bound what is gathered before a push.
type Limits struct {
	// MaxFiles (--git-batch-max-files, 200) and MaxBytes (--git-batch-max-bytes-mib, 1 MiB)
	// end the gathering early; they are also the most that one batch carries.
	MaxFiles int
	MaxBytes int
	// MaxWait (--git-batch-max-wait-sec, 20 s) is the longest that a change waits for others.
	MaxWait time.Duration
	// Workers (--workers-max-global, 24) is how many branches are written at once.
	Workers int
}

// batch is what one push carries of one destination.
type batch struct {
	destination *destination
	// rows are all that the push settles, superseded ones included.
	rows   []Row
	pushed pushed
}

// pushed sums up what a push brought to one destination.
type pushed struct {
	last             gitrepo.Hash
	subject          string
	commits          int
	written, removed int
}

// pushRows pushes the oldest rows, as many as one batch carries. It returns whether there
// may be more to push at once.
func (w *worker) pushRows(ctx context.Context, active []*destination) (more bool, err error) {
	waiting := w.backlog(active)
	if waiting.rows == 0 || w.gathering(active, waiting) {
		return false, nil
	}
	started := time.Now()
	room := w.services.limits.MaxFiles
	var batches []*batch
	for _, d := range active {
		if room <= 0 {
			break
		}
		rows, err := w.services.outbox.Next(ctx, d.key, min(room, maxCommits(d)), w.services.limits.MaxBytes)
		if err != nil {
			return false, err
		}
		if len(rows) == 0 {
			continue
		}
		b := &batch{destination: d, rows: rows}
		if err := w.stageRows(b); err != nil {
			return false, err
		}
		room -= len(rows)
		batches = append(batches, b)
	}
	if err := w.push(ctx, active, batches); err != nil {
		return false, err
	}
	return w.gatherNext(active, time.Since(started)), nil
}

func maxCommits(d *destination) int {
	if policy := d.plan.Load().repository.Spec.Push; policy != nil && policy.MaxCommits != nil {
		return int(*policy.MaxCommits)
	}
	return 1 << 30
}

func (w *worker) backlog(active []*destination) backlog {
	var sum backlog
	for _, d := range active {
		one := d.queue.backlog()
		sum.rows += one.rows
		sum.bytes += one.bytes
		if sum.oldest.IsZero() || !one.oldest.IsZero() && one.oldest.Before(sum.oldest) {
			sum.oldest = one.oldest
		}
	}
	return sum
}

// gathering says whether rows are held back for company. A change after a quiet spell is
// pushed at once. While changes keep coming, the next push waits for as long as the last
// one took, so that at most half of the time goes into pushing, and no longer than the
// limits say.
func (w *worker) gathering(active []*destination, waiting backlog) bool {
	if w.gatherUntil.IsZero() {
		return false
	}
	limits := w.services.limits
	full := waiting.rows >= min(limits.MaxFiles, maxCommits(active[0])) || waiting.bytes >= limits.MaxBytes
	if full || !time.Now().Before(w.gatherUntil) {
		w.gatherUntil = time.Time{}
		return false
	}
	return true
}

// gatherNext decides, after a push that took some time, how long rows that came meanwhile
// are held back. It returns true when they can go at once.
func (w *worker) gatherNext(active []*destination, took time.Duration) bool {
	w.gatherUntil = time.Time{}
	waiting := w.backlog(active)
	if waiting.rows == 0 {
		return false
	}
	if waiting.rows >= w.services.limits.MaxFiles || waiting.bytes >= w.services.limits.MaxBytes {
		return true
	}
	longest := w.services.limits.MaxWait
	if policy := active[0].plan.Load().repository.Spec.Push; policy != nil && policy.Interval != nil {
		longest = policy.Interval.Duration
	}
	w.gatherUntil = time.Now().Add(min(took, longest))
	return false
}

// stageRows makes commits of rows, less those that a comparison has superseded.
func (w *worker) stageRows(b *batch) error {
	d := b.destination
	var changes []Change
	for _, row := range b.rows {
		if row.Change.UID == d.uid && !d.seeds.superseded(row.Change) {
			changes = append(changes, row.Change)
		}
	}
	for _, g := range groupChanges(d.plan.Load().object.Spec.Granularity, changes) {
		if err := w.stage(d, g, false, &b.pushed); err != nil {
			return err
		}
	}
	return nil
}

// stage makes a commit of the changes that change anything.
func (w *worker) stage(d *destination, g group, seed bool, sum *pushed) error {
	p := d.plan.Load()
	changes := w.effective(p, g.final())
	if len(changes) == 0 {
		return nil
	}
	files := make([]gitrepo.Change, len(changes))
	for i, change := range changes {
		files[i] = gitrepo.Change{Path: p.file(change.Path), Content: change.Content}
	}
	message := newMessage(d.key, g.author, changes, seed)
	text := message.text(messageTemplate(p.repository), w.services.identity.trailers(message, changes))
	committer := committerOf(p.repository)
	author := gitrepo.Signature{Name: g.author.Name, Email: g.author.Email}
	if author.Name == "" {
		author = committer
	}
	author.When, committer.When = changes[len(changes)-1].Time, time.Now()
	hash, staged, err := w.branch.Stage(gitrepo.Commit{Author: author, Committer: committer, Message: text, Changes: files})
	if err != nil {
		return wrap("make a commit", err)
	}
	if staged {
		sum.add(hash, message.Subject, changes)
	}
	return nil
}

// effective leaves out the changes that the branch holds already, and says of the others
// whether they create or update a file.
func (w *worker) effective(p *destinationPlan, changes []Change) []Change {
	tree := w.branch.Snapshot()
	var effective []Change
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

func (s *pushed) add(hash gitrepo.Hash, subject string, changes []Change) {
	s.last, s.subject = hash, subject
	s.commits++
	for _, change := range changes {
		if change.Operation == v1alpha1.OperationDelete {
			s.removed++
		} else {
			s.written++
		}
	}
}

// push sends what is staged, after noting it, and removes the rows once the remote has
// accepted it. After an error the branch has been rolled back and the rows are still there.
func (w *worker) push(ctx context.Context, active []*destination, batches []*batch) error {
	note := pushNote{Through: map[string]uint64{}}
	for _, b := range batches {
		if b.pushed.commits > 0 {
			note.Tip = b.pushed.last
		}
		if n := len(b.rows); n > 0 {
			note.Through[b.destination.key.String()] = b.rows[n-1].Sequence
		}
	}
	failpoint.Reach("commits-staged")
	if !note.Tip.IsZero() {
		if err := w.services.pushes.write(ctx, w.key, note); err != nil {
			return err
		}
		failpoint.Reach("push-noted")
		if _, err := w.branch.Push(ctx); err != nil {
			w.show(active)
			return err
		}
		failpoint.Reach("pushed")
		w.show(active)
	}
	for _, b := range batches {
		if err := w.forget(ctx, b.destination, b.rows); err != nil {
			return err
		}
		b.destination.record.pushed(b.pushed)
	}
	failpoint.Reach("rows-removed")
	return nil
}

// The committer where a GitRepoConfig names none.
const (
	defaultCommitter      = "Slipstream"
	defaultCommitterEmail = "slipstream@configbutler.ai"
)

func committerOf(repository *v1alpha1.GitRepoConfig) gitrepo.Signature {
	if policy := repository.Spec.Commit; policy != nil && policy.Committer != nil {
		return gitrepo.Signature{Name: policy.Committer.Name, Email: policy.Committer.Email}
	}
	return gitrepo.Signature{Name: defaultCommitter, Email: defaultCommitterEmail}
}

// messageTemplate returns the template of a repository, nil without one. Validation has
// parsed it; one that does not parse is as good as none.
func messageTemplate(repository *v1alpha1.GitRepoConfig) *template.Template {
	if repository.Spec.Commit == nil || repository.Spec.Commit.MessageTemplate == "" {
		return nil
	}
	parsed, err := template.New("message").Parse(repository.Spec.Commit.MessageTemplate)
	if err != nil {
		return nil
	}
	return parsed
}
