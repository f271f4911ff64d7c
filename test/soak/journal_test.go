// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// object identifies an object that users change.
type object struct{ resource, namespace, name string }

// journal records who wrote which object, as the API server has acknowledged it.
type journal struct {
	mutex sync.Mutex
	// authors are the users who wrote the versions of an object.
	authors map[object]map[string]string
	// writers are the users who may have written an object, also in requests without a response.
	writers map[object]sets.Set[string]
	// lines describe the writes of an object with a response, in the order of the responses.
	lines map[object][]string
	// acknowledged and unanswered are the numbers of writes with and without a response.
	acknowledged, unanswered int
}

func newJournal() *journal {
	return &journal{authors: map[object]map[string]string{}, writers: map[object]sets.Set[string]{}, lines: map[object][]string{}}
}

// begin records that a user is about to write an object.
func (j *journal) begin(o object, user string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.writers[o] == nil {
		j.writers[o], j.authors[o] = sets.New[string](), map[string]string{}
	}
	j.writers[o].Insert(user)
}

// acknowledge records the version that a user has written; it is empty for a deletion.
func (j *journal) acknowledge(o object, user, version string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.acknowledged++
	j.lines[o] = append(j.lines[o], fmt.Sprintf("%s %s %s", stamp(time.Now()), user, cmp.Or(version, "deleted")))
	if version != "" {
		j.authors[o][version] = user
	}
}

// describe returns the writes of an object.
func (j *journal) describe(o object) []string {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return slices.Clone(j.lines[o])
}

// lose records that the outcome of a write is unknown.
func (j *journal) lose() {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.unanswered++
}

// has reports whether the journal is about an object.
func (j *journal) has(o object) bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.writers[o] != nil
}

// author returns the user who wrote a version of an object, empty if that is not known, and whether a user may have written the object.
func (j *journal) author(o object, version, user string) (author string, mayBe bool) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.authors[o][version], j.writers[o].Has(user)
}
