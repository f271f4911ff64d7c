// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// record collects the content of a GitDestinationStatus.
type record struct {
	mu  sync.Mutex
	now snapshot
	// held are the paths of orphans that are kept.
	held map[string]struct{}
	// noted has what events have said of paths since a round of comparisons began, because its lists may be older. It is nil between rounds.
	noted map[string]notedPath
}

// notedPath is what an event says of a path: whether its file is an orphan that is kept. sure is set if the file is known to exist.
type notedPath struct {
	object     outbox.Object
	held, sure bool
}

// snapshot is the content of a record at one time.
type snapshot struct {
	lastCommit  gitrepo.Hash
	lastSubject string
	lastPush    time.Time
	retries     int64
	// authors counts the changes by the source of their attribution.
	authors v1alpha1.AttributionCounts

	// files are the numbers of managed files by type. The map is replaced, never changed.
	files          map[schema.GroupVersionResource]int64
	orphansRemoved int64
	orphansHeld    int64
	compared       time.Time
	failure        error
	// nextAttempt is the time of the next retry; zero if it is unknown.
	nextAttempt time.Time
	// owner and conflict are the ownership of the folder, once ownerKnown is set.
	owner      *v1alpha1.OwnerMarker
	conflict   string
	ownerKnown bool
	// leaseHolder is the last known holder of the branch's Lease.
	leaseHolder string
	// served is set once the branch has been served without an error.
	served bool
}

func (r *record) update(change func(*snapshot)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.now)
}

// resume takes over the last push and the counters from the status that an earlier process wrote.
func (r *record) resume(status v1alpha1.GitDestinationRecord) {
	r.update(func(s *snapshot) {
		s.retries, s.orphansRemoved, s.authors = status.PushRetries, status.OrphansRemoved, status.Attribution
		if status.LastPushTime != nil {
			s.lastPush = status.LastPushTime.Time
		}
		if commit := status.LastCommit; commit != nil {
			s.lastCommit, s.lastSubject = gitrepo.ParseHash(commit.SHA), commit.Message
		}
	})
}

// current returns a snapshot of the record.
func (r *record) current() snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now
	now.orphansHeld = int64(len(r.held))
	return now
}

// failed records an error and the time of the next retry. ErrMoved counts as a retry only, because it is retried at once.
func (r *record) failed(err error, next time.Time) {
	r.update(func(s *snapshot) {
		s.retries++
		if !errors.Is(err, gitrepo.ErrMoved) {
			s.failure, s.nextAttempt = err, next
		}
	})
}

// overtaken records that another writer was faster than a push, which follows it.
func (r *record) overtaken() {
	r.update(func(s *snapshot) { s.retries++ })
}

// refuses records why the destination is held, whatever the state of its branch.
func (r *record) refuses(err error, next time.Time) {
	r.update(func(s *snapshot) { s.failure, s.nextAttempt = err, next })
}

// succeeded records that the destination is served. It reports whether that is new.
func (r *record) succeeded() (changed bool) {
	r.update(func(s *snapshot) {
		changed = s.failure != nil || !s.served
		s.failure, s.nextAttempt, s.served = nil, time.Time{}, true
	})
	return changed
}

// owned records the ownership of the folder. It reports whether that has changed.
func (r *record) owned(o ownership) (changed bool) {
	r.update(func(s *snapshot) {
		changed = !s.ownerKnown || s.conflict != o.conflict || !equality.Semantic.DeepEqual(s.owner, o.owner)
		s.owner, s.conflict, s.ownerKnown = o.owner, o.conflict, true
		if o.refused != nil {
			changed = changed || s.failure == nil || s.failure.Error() != o.refused.Error()
			s.failure, s.nextAttempt = o.refused, time.Time{}
		}
	})
	return changed
}

// leased records the holder of the branch's Lease.
func (r *record) leased(holder string) {
	r.update(func(s *snapshot) { s.leaseHolder = holder })
}

// counted records the number of managed files of each type.
func (r *record) counted(files map[schema.GroupVersionResource]int64) {
	r.update(func(s *snapshot) { s.files = files })
}

// pushed records an accepted push.
func (r *record) pushed(p pushed) {
	if p.commits == 0 {
		return
	}
	r.update(func(s *snapshot) {
		s.lastCommit, s.lastSubject, s.lastPush = p.last, p.subject, time.Now()
		s.authors = sumOf(s.authors, p.authors)
		files := maps.Clone(s.files)
		if files == nil {
			files = map[schema.GroupVersionResource]int64{}
		}
		for t, more := range p.files {
			files[t] += more
		}
		s.files = files
	})
}

// compared records the time of a comparison.
func (r *record) compared() {
	r.update(func(s *snapshot) { s.compared = time.Now() })
}

// orphansRemoved counts removed orphans.
func (r *record) orphansRemoved(n int) {
	r.update(func(s *snapshot) { s.orphansRemoved += int64(n) })
}

// beginRound is called before the first list of a round of comparisons, endRound after its last result.
func (r *record) beginRound() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noted = map[string]notedPath{}
}

func (r *record) endRound() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noted = nil
}

// hold records an orphan that is kept. sure reports whether its file is known to exist; if it is not, a running round decides.
func (r *record) hold(object outbox.Object, path string, sure bool) {
	r.note(path, notedPath{object: object, held: true, sure: sure})
}

// release records that an object maps to a path.
func (r *record) release(object outbox.Object, path string) {
	r.note(path, notedPath{object: object, sure: true})
}

// note records what an event says of a path.
func (r *record) note(path string, note notedPath) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.noted != nil {
		r.noted[path] = note
	}
	if r.noted == nil || note.sure {
		r.setHeld(path, note.held)
	}
}

// setHeld adds or removes a held path. The caller holds mu.
func (r *record) setHeld(path string, held bool) {
	switch {
	case !held:
		delete(r.held, path)
	case r.held == nil:
		r.held = map[string]struct{}{path: {}}
	default:
		r.held[path] = struct{}{}
	}
}

// unsure returns the noted paths in a scope that may have no file.
func (r *record) unsure(inScope func(outbox.Object) bool) map[string]notedPath {
	r.mu.Lock()
	defer r.mu.Unlock()
	unsure := map[string]notedPath{}
	for path, note := range r.noted {
		if !note.sure && inScope(note.object) {
			unsure[path] = note
		}
	}
	return unsure
}

// holdOnly replaces the held files for which inScope is true by the given ones, except where events have said otherwise since their list.
// hasFile reports whether a path has a file.
func (r *record) holdOnly(inScope func(outbox.Object) bool, held []managedFile, hasFile func(object outbox.Object, path string) bool) {
	unsure := r.unsure(inScope)
	maps.DeleteFunc(unsure, func(path string, note notedPath) bool { return hasFile(note.object, path) })
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.held, func(path string, _ struct{}) bool {
		file, ok := parseManaged(path)
		return !ok || inScope(file.object)
	})
	for _, file := range held {
		r.setHeld(file.path, true)
	}
	for path, note := range r.noted {
		if inScope(note.object) {
			_, missing := unsure[path]
			r.setHeld(path, note.held && (note.sure || !missing))
		}
	}
}
