// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/attribution/internal/fairqueue"
)

const (
	// keepLasting is how long the deletion of an object that does not go is remembered.
	keepLasting = 7 * 24 * time.Hour
	// maxLasting bounds such deletions: most are of objects that nobody asks about, and that nobody says are gone.
	maxLasting = 10_000
)

// lasting is what the replica that leads knows of the lasting rows, from whichever of those who follow. It is empty anywhere
// else.
//
// One of them may say that an object is gone before another has been told of its end. The row is not needed for that: all
// have been told of the fact, and keep it.
type lasting struct {
	mu sync.Mutex
	// followers is how many follow.
	followers int
	// rows is nil before the first of them has been told what there is.
	rows *fairqueue.Queue[lastingRow]
	// ofObject are the rows of each object.
	ofObject map[types.UID]map[string]*fairqueue.Entry[lastingRow]
	// gone are the objects that were forgotten a short while ago: a fact may come after the end of its object.
	gone map[types.UID]time.Time
	// unwanted are the keys of rows that are to be removed.
	unwanted []string
}

// lastingRow is what must be known of a row in order to remove it.
type lastingRow struct {
	key   string
	uid   types.UID
	begun time.Time
}

// following says whether this replica leads.
func (l *lasting) following() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rows != nil
}

// begin takes note of one who follows.
func (l *lasting) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.followers++
}

// listed forgets what rows there are, before one who follows is told them anew. What another knows of later is told to both.
func (l *lasting) listed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows = fairqueue.New[lastingRow](maxLasting)
	l.ofObject = map[types.UID]map[string]*fairqueue.Entry[lastingRow]{}
	l.unwanted = nil
	if l.gone == nil {
		l.gone = map[types.UID]time.Time{}
	}
}

// end forgets everything when nobody follows any more.
func (l *lasting) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.followers--; l.followers > 0 {
		return
	}
	l.rows, l.ofObject, l.gone, l.unwanted = nil, nil, nil, nil
}

// add learns of the row of a fact.
func (l *lasting) add(key string, fact attribution.Fact) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, gone := l.gone[fact.UID]; gone {
		l.unwanted = append(l.unwanted, key)
		return
	}
	rows, found := l.ofObject[fact.UID]
	if !found {
		rows = map[string]*fairqueue.Entry[lastingRow]{}
		l.ofObject[fact.UID] = rows
	}
	if _, told := rows[key]; told {
		return
	}
	added, evicted := l.rows.Add(fact.Namespace, lastingRow{key: key, uid: fact.UID, begun: fact.Begun})
	rows[key] = added
	if evicted != nil {
		attribution.Evicted(1)
		l.remove(evicted)
	}
}

// remove lets go of a row. The caller holds mu.
func (l *lasting) remove(entry *fairqueue.Entry[lastingRow]) {
	row := entry.Value
	l.rows.Remove(entry)
	delete(l.ofObject[row.uid], row.key)
	if len(l.ofObject[row.uid]) == 0 {
		delete(l.ofObject, row.uid)
	}
	l.unwanted = append(l.unwanted, row.key)
}

// forget lets go of the rows of an object, those that are still to come included.
func (l *lasting) forget(uid types.UID, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rows == nil {
		return
	}
	l.gone[uid] = now
	for _, entry := range l.ofObject[uid] {
		l.remove(entry)
	}
}

// due takes the keys of the rows that are to be removed.
func (l *lasting) due(now time.Time) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rows == nil {
		return nil
	}
	for uid, since := range l.gone {
		if now.Sub(since) > keepRecent {
			delete(l.gone, uid)
		}
	}
	for _, entry := range l.rows.Entries() {
		if now.Sub(entry.Value.begun) > keepLasting {
			l.remove(entry)
		}
	}
	due := l.unwanted
	l.unwanted = nil
	return due
}

// giveBack takes keys that could not be removed.
func (l *lasting) giveBack(keys []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rows != nil {
		l.unwanted = append(l.unwanted, keys...)
	}
}
