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
)

// record gathers what a GitDestinationStatus tells.
type record struct {
	mu sync.Mutex
	facts
	// held are the paths of the files that no object maps to and that are kept.
	held map[string]struct{}
}

// facts is a copy of a record at one moment.
type facts struct {
	lastCommit  gitrepo.Hash
	lastSubject string
	lastPush    time.Time
	retries     int64
	// authors counts the changes by the signal that told who made them.
	authors v1alpha1.AttributionCounts

	// files are the managed files by type. The map is not changed, but replaced.
	files          map[schema.GroupVersionResource]int64
	orphansRemoved int64
	orphansHeld    int64
	compared       time.Time
	failure        error
	// nextAttempt is when what failed is tried again, if nothing is done about it before; zero where that is not known.
	nextAttempt time.Time
	// owner and conflict are what the marker in the folder says; known, that it has been
	// looked for.
	owner      *v1alpha1.OwnerMarker
	conflict   string
	ownerKnown bool
	// leaseHolder is who held the Lease of the branch when it was last looked at.
	leaseHolder string
	// served says that the branch has been read and written without an error.
	served bool
}

func (r *record) update(change func(*facts)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.facts)
}

// resume goes on from what an earlier process has told: what was pushed last, and the counts. The rest is found out anew.
func (r *record) resume(told v1alpha1.GitDestinationRecord) {
	r.update(func(f *facts) {
		f.retries, f.orphansRemoved, f.authors = told.PushRetries, told.OrphansRemoved, told.Attribution
		if told.LastPushTime != nil {
			f.lastPush = told.LastPushTime.Time
		}
		if commit := told.LastCommit; commit != nil {
			f.lastCommit, f.lastSubject = gitrepo.ParseHash(commit.SHA), commit.Message
		}
	})
}

// current returns the facts.
func (r *record) current() facts {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.facts
	now.orphansHeld = int64(len(r.held))
	return now
}

// failed notes an error that keeps the destination back. That another writer was faster
// does not: it is tried again at once. next is when the server tries again.
func (r *record) failed(err error, next time.Time) {
	r.update(func(f *facts) {
		f.retries++
		if !errors.Is(err, gitrepo.ErrMoved) {
			f.failure, f.nextAttempt = err, next
		}
	})
}

// refuses notes why the destination is held meanwhile, whatever has happened to its branch since.
func (r *record) refuses(err error, next time.Time) {
	r.update(func(f *facts) { f.failure, f.nextAttempt = err, next })
}

// succeeded notes that nothing keeps the destination back. It returns whether that is new.
func (r *record) succeeded() (changed bool) {
	r.update(func(f *facts) {
		changed = f.failure != nil || !f.served
		f.failure, f.nextAttempt, f.served = nil, time.Time{}, true
	})
	return changed
}

// owned notes whose the folder is. It returns whether that is new.
func (r *record) owned(o ownership) (changed bool) {
	r.update(func(f *facts) {
		changed = !f.ownerKnown || f.conflict != o.conflict || !equality.Semantic.DeepEqual(f.owner, o.owner)
		f.owner, f.conflict, f.ownerKnown = o.owner, o.conflict, true
		if o.refused != nil {
			changed = changed || f.failure == nil || f.failure.Error() != o.refused.Error()
			f.failure, f.nextAttempt = o.refused, time.Time{}
		}
	})
	return changed
}

// leased notes who holds the Lease of the branch.
func (r *record) leased(holder string) {
	r.update(func(f *facts) { f.leaseHolder = holder })
}

// counted notes how many managed files there are of each type.
func (r *record) counted(files map[schema.GroupVersionResource]int64) {
	r.update(func(f *facts) { f.files = files })
}

// pushed notes what the remote has accepted.
func (r *record) pushed(p pushed) {
	if p.commits == 0 {
		return
	}
	r.update(func(f *facts) {
		f.lastCommit, f.lastSubject, f.lastPush = p.last, p.subject, time.Now()
		f.authors = sumOf(f.authors, p.authors)
		files := maps.Clone(f.files)
		if files == nil {
			files = map[schema.GroupVersionResource]int64{}
		}
		for t, more := range p.files {
			files[t] += more
		}
		f.files = files
	})
}

// compared notes a comparison.
func (r *record) compared() {
	r.update(func(f *facts) { f.compared = time.Now() })
}

// orphansRemoved notes files that were removed because no object mapped to them.
func (r *record) orphansRemoved(n int) {
	r.update(func(f *facts) { f.orphansRemoved += int64(n) })
}

// hold notes a file that no object maps to and that is kept.
func (r *record) hold(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == nil {
		r.held = map[string]struct{}{}
	}
	r.held[path] = struct{}{}
}

// release notes that an object maps to a path.
func (r *record) release(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held, path)
}

// holdOnly makes the files held, of those looked at, the ones given.
func (r *record) holdOnly(lookedAt func(Object) bool, held []managedFile) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.held, func(path string, _ struct{}) bool {
		file, ok := parseManaged(path)
		return !ok || lookedAt(file.object)
	})
	if len(held) > 0 && r.held == nil {
		r.held = make(map[string]struct{}, len(held))
	}
	for _, file := range held {
		r.held[file.path] = struct{}{}
	}
}
