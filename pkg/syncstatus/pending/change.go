// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pending

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/configbutler/slipstream/pkg/attribution"
)

const (
	// maxAuthors bounds the authors of one change. Who was there last counts most.
	maxAuthors = 10
	// maxAuthorBytes bounds what is kept of one author, so that no row is too large to be written.
	maxAuthorBytes = 1 << 10
)

// Object names an object of a source namespace, whatever the version of its type.
type Object struct {
	schema.GroupKind
	Namespace string
	Name      string
}

// Event is one change of an object, as a watch or a comparison has told of it.
type Event struct {
	Object
	// UID and ResourceVersion are those of the object after the change, or of its last state. A comparison that finds that
	// an object is gone knows none.
	UID             types.UID
	ResourceVersion string
	// Removed says that the object is gone.
	Removed bool
	// Author is who made the change.
	Author attribution.Author
}

// EventOf is the event that an object has become what it is, or that it is gone.
func EventOf(object *unstructured.Unstructured, removed bool, author attribution.Author) Event {
	return Event{
		Object: Object{GroupKind: object.GroupVersionKind().GroupKind(), Namespace: object.GetNamespace(), Name: object.GetName()},
		UID:    object.GetUID(), ResourceVersion: object.GetResourceVersion(), Removed: removed, Author: author,
	}
}

// Change is what the events of one object in one batch come to.
type Change struct {
	Object
	// UID, ResourceVersion and Removed are those of the newest event.
	UID             types.UID
	ResourceVersion string
	Removed         bool
	// FirstResourceVersion is that of the first event.
	FirstResourceVersion string
	// First and Last are when the first and the last event came.
	First, Last time.Time
	// Events counts them. One that is told twice counts once; of an object that is only to be looked at, there are none.
	Events int
	// Authors made them, who was there last at the end: the last ten at most.
	Authors []Contribution
}

// Contribution is how many events of a change somebody made.
type Contribution struct {
	// Author has no groups.
	Author attribution.Author `json:"author"`
	Events int                `json:"events"`
}

// merge adds an event and says whether it is news.
func (c *Change) merge(event Event, now time.Time) bool {
	switch order := c.order(event); {
	case order == 0:
		return false
	case order > 0:
		c.UID, c.ResourceVersion, c.Removed = event.UID, event.ResourceVersion, event.Removed
	}
	if c.Events == 0 {
		c.FirstResourceVersion = event.ResourceVersion
	}
	c.Last = now
	c.Events++
	c.contribute(event.Author)
	return true
}

// order says whether an event is newer than all before it (1), older than the newest (-1), or the newest told again (0).
// What has no order comes in order.
func (c *Change) order(event Event) int {
	if c.Events == 0 || event.UID != c.UID {
		return 1
	}
	order, err := resourceversion.CompareResourceVersion(event.ResourceVersion, c.ResourceVersion)
	if err != nil || order == 0 && event.Removed != c.Removed {
		return 1
	}
	return order
}

// contribute counts an event of an author, who goes to the end.
func (c *Change) contribute(author attribution.Author) {
	author = kept(author)
	one := Contribution{Author: author}
	if i := slices.IndexFunc(c.Authors, func(there Contribution) bool { return sameAuthor(there.Author, author) }); i >= 0 {
		one.Events = c.Authors[i].Events
		c.Authors = slices.Delete(c.Authors, i, i+1)
	}
	one.Events++
	if len(c.Authors) == maxAuthors {
		c.Authors = slices.Delete(c.Authors, 0, 1)
	}
	c.Authors = append(c.Authors, one)
}

// kept is what is kept of an author. A name that is longer than any real one is left out rather than cut, which would make
// it that of somebody else.
func kept(author attribution.Author) attribution.Author {
	author.Groups = nil
	if author.Signal == "" {
		author.Signal = attribution.Unknown
	}
	size := len(author.Username) + len(author.Name) + len(author.Email) + len(author.ImpersonatedBy) +
		len(author.Signal) + len(author.Manager) + len(author.NamespaceDeletedBy)
	if size > maxAuthorBytes {
		return attribution.Author{Signal: attribution.Unknown}
	}
	return author
}

// sameAuthor compares what tells authors apart. What an identity provider says beside the user's name may change.
func sameAuthor(a, b attribution.Author) bool {
	return a.Username == b.Username && a.ImpersonatedBy == b.ImpersonatedBy && a.Signal == b.Signal &&
		a.Manager == b.Manager && a.NamespaceDeletedBy == b.NamespaceDeletedBy
}

// compareObjects orders those of one namespace.
func compareObjects(a, b Object) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Group, b.Group))
}
