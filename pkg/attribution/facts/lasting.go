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
	// keepLasting is how long the deletion of an object that continues to exist is kept.
	keepLasting = 7 * 24 * time.Hour
	// maxLasting bounds such deletions: most are of objects that are not watched, whose end is not reported.
	maxLasting = 10_000
)

// lasting is the leader's index of the lasting rows, filled by all followers. It is empty on other replicas.
//
// One follower may forget an object before another has seen its deletion. That one does not need the row: it has received
// the fact already.
type lasting struct {
	mu sync.Mutex
	// followers counts the followers.
	followers int
	// rows is nil before the first list.
	rows *fairqueue.Queue[lastingRow]
	// ofObject are the rows of each object.
	ofObject map[types.UID]map[string]*fairqueue.Entry[lastingRow]
	// gone are the objects that were forgotten recently: a fact may arrive after its object was deleted.
	gone map[types.UID]time.Time
	// unwanted are the keys of rows to remove.
	unwanted []string
}

// lastingRow identifies a row to remove.
type lastingRow struct {
	key   string
	uid   types.UID
	begun time.Time
}

// following reports whether a follower has listed the rows, which means that this replica leads.
func (l *lasting) following() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rows != nil
}

// begin counts a new follower.
func (l *lasting) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.followers++
}

// listed clears the index before a follower adds the rows of a new list. Later rows reach all followers.
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

// end clears the index after the last follower has ended.
func (l *lasting) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.followers--; l.followers > 0 {
		return
	}
	l.rows, l.ofObject, l.gone, l.unwanted = nil, nil, nil, nil
}

// add adds the row of a fact.
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
	if _, found := rows[key]; found {
		return
	}
	added, evicted := l.rows.Add(fact.Namespace, lastingRow{key: key, uid: fact.UID, begun: fact.Begun})
	rows[key] = added
	if evicted != nil {
		attribution.Evicted(1)
		l.remove(evicted)
	}
}

// remove drops a row from the index and marks it for removal. The caller holds mu.
func (l *lasting) remove(entry *fairqueue.Entry[lastingRow]) {
	row := entry.Value
	l.rows.Remove(entry)
	delete(l.ofObject[row.uid], row.key)
	if len(l.ofObject[row.uid]) == 0 {
		delete(l.ofObject, row.uid)
	}
	l.unwanted = append(l.unwanted, row.key)
}

// forget drops the rows of an object, including those that are added later.
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

// due returns and clears the keys of the rows to remove.
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

// giveBack returns keys that could not be removed.
func (l *lasting) giveBack(keys []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rows != nil {
		l.unwanted = append(l.unwanted, keys...)
	}
}
