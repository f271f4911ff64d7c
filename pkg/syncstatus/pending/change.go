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
	// maxAuthors is the maximum number of authors of one change. The last ones are kept.
	maxAuthors = 10
	// maxAuthorBytes is the maximum size of one author, so that no row is too large to be written.
	maxAuthorBytes = 1 << 10
)

// Object identifies an object of a source namespace, in any API version.
type Object struct {
	schema.GroupKind
	Namespace string
	Name      string
}

// Event is one change of an object, reported by a watch or a comparison.
type Event struct {
	Object
	// UID and ResourceVersion are those of the object after the change, or of its last state. They are empty for an object that a comparison
	// has found to be deleted.
	UID             types.UID
	ResourceVersion string
	// Removed is true if the object was deleted.
	Removed bool
	// Author is who made the change.
	Author attribution.Author
	// Recorded is true if a record already has the object as it is after the change: the event requests a comparison, and does not add its
	// author to what is recorded next. It has an effect only on the first events of a batch.
	Recorded bool
}

// EventOf returns the event of the current state of an object, or of its deletion.
func EventOf(object *unstructured.Unstructured, removed bool, author attribution.Author) Event {
	return Event{
		Object: Object{GroupKind: object.GroupVersionKind().GroupKind(), Namespace: object.GetNamespace(), Name: object.GetName()},
		UID:    object.GetUID(), ResourceVersion: object.GetResourceVersion(), Removed: removed, Author: author,
	}
}

// Change combines the events of one object in one batch.
type Change struct {
	Object
	// UID, ResourceVersion and Removed are those of the newest event.
	UID             types.UID
	ResourceVersion string
	Removed         bool
	// FirstResourceVersion is that of the first event.
	FirstResourceVersion string
	// First and Last are when the first and the last event were received.
	First, Last time.Time
	// Events is the number of events. A repeated event counts once, and one of what is recorded does not count. It is 0 for an object that
	// Include has added.
	Events int
	// Authors are the last ten authors of the events, the most recent one last.
	Authors []Contribution
}

// Contribution is the number of events of a change by one author.
type Contribution struct {
	// Author has no groups.
	Author attribution.Author `json:"author"`
	Events int                `json:"events"`
}

// merge adds an event. It returns false for a repeated event.
func (c *Change) merge(event Event, now time.Time) bool {
	switch order := c.order(event); {
	case order == 0:
		return false
	case order > 0:
		c.UID, c.ResourceVersion, c.Removed = event.UID, event.ResourceVersion, event.Removed
	}
	c.Last = now
	if event.Recorded && c.Events == 0 {
		return true
	}
	if c.Events == 0 {
		c.FirstResourceVersion = event.ResourceVersion
	}
	c.Events++
	c.addAuthor(event.Author)
	return true
}

// order returns whether an event is newer than all previous ones (1), older than the newest one (-1), or a repetition of the newest one
// (0). Events that cannot be compared are assumed to be in order.
func (c *Change) order(event Event) int {
	if c.Events == 0 && c.ResourceVersion == "" || event.UID != c.UID {
		return 1
	}
	order, err := resourceversion.CompareResourceVersion(event.ResourceVersion, c.ResourceVersion)
	if err != nil || order == 0 && event.Removed != c.Removed {
		return 1
	}
	return order
}

// addAuthor counts an event of an author, who becomes the last one.
func (c *Change) addAuthor(author attribution.Author) {
	author = storedAuthor(author)
	one := Contribution{Author: author}
	if i := slices.IndexFunc(c.Authors, func(other Contribution) bool { return sameAuthor(other.Author, author) }); i >= 0 {
		one.Events = c.Authors[i].Events
		c.Authors = slices.Delete(c.Authors, i, i+1)
	}
	one.Events++
	if len(c.Authors) == maxAuthors {
		c.Authors = slices.Delete(c.Authors, 0, 1)
	}
	c.Authors = append(c.Authors, one)
}

// storedAuthor returns the stored form of an author. An author that is too long is replaced by an unknown one. A truncated name could be
// that of another user.
func storedAuthor(author attribution.Author) attribution.Author {
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

// sameAuthor compares the fields that identify an author. Name and email from the identity provider may change.
func sameAuthor(a, b attribution.Author) bool {
	return a.Username == b.Username && a.ImpersonatedBy == b.ImpersonatedBy && a.Signal == b.Signal &&
		a.Manager == b.Manager && a.NamespaceDeletedBy == b.NamespaceDeletedBy
}

// compareObjects orders the objects of one namespace.
func compareObjects(a, b Object) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Group, b.Group))
}
