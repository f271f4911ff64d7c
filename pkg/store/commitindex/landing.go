// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package commitindex

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// maxMessage bounds what is kept of a commit's message, in bytes.
const maxMessage = 512

// Object names an object, whatever the version of its type.
type Object struct {
	schema.GroupResource
	Namespace string
	Name      string
}

// Commit is a commit that was made for a destination.
type Commit struct {
	Destination types.NamespacedName `json:"destination"`
	// SHA is its hash in hexadecimal.
	SHA string `json:"sha"`
	// Time is its committer time.
	Time time.Time `json:"time"`
	// Message is the first line of its message, or the beginning of that.
	Message string `json:"message,omitempty"`
	// URL is a link to it; empty: there is none.
	URL string `json:"url,omitempty"`
}

// Landing says that a commit holds an object.
type Landing struct {
	Object Object `json:"object"`
	Commit Commit `json:"commit"`
	// First and Last are the resourceVersions of the first and the last change of the object that the commit holds. First
	// is empty when that is not known: the object was compared with the branch when it had Last.
	First string `json:"first,omitempty"`
	Last  string `json:"last"`
	// Created says that the branch did not have the object before, Removed that it does not have it any more.
	Created bool `json:"created,omitempty"`
	Removed bool `json:"removed,omitempty"`
}

// Interest is which objects somebody cares for: those of some types in some namespaces.
type Interest struct {
	Resources  []schema.GroupResource `json:"resources,omitempty"`
	Namespaces []string               `json:"namespaces,omitempty"`
}

func (i Interest) includes(o Object) bool {
	return slices.Contains(i.Namespaces, o.Namespace) && slices.Contains(i.Resources, o.GroupResource)
}

// with is both interests together.
func (i Interest) with(other Interest) Interest {
	return Interest{
		Resources:  distinct(append(slices.Clone(i.Resources), other.Resources...), schema.GroupResource.String),
		Namespaces: distinct(append(slices.Clone(i.Namespaces), other.Namespaces...), strings.Clone),
	}
}

func (i Interest) equals(other Interest) bool {
	return slices.Equal(i.Resources, other.Resources) && slices.Equal(i.Namespaces, other.Namespaces)
}

// distinct sorts values by what they read like, and keeps each once.
func distinct[T comparable](values []T, reads func(T) string) []T {
	slices.SortFunc(values, func(a, b T) int { return strings.Compare(reads(a), reads(b)) })
	return slices.Compact(values)
}

// kept is a landing as it is kept.
func (l Landing) kept() Landing {
	if len(l.Commit.Message) > maxMessage {
		l.Commit.Message = strings.ToValidUTF8(l.Commit.Message[:maxMessage], "")
	}
	return l
}

// Compare orders landings by the last changes that they hold, and landings of the same change by their commits.
func (l Landing) Compare(other Landing) int {
	a, b := l.Commit, other.Commit
	return cmp.Or(Compare(l.Last, other.Last), a.Time.Compare(b.Time),
		strings.Compare(a.Destination.String(), b.Destination.String()), strings.Compare(a.SHA, b.SHA))
}

// Compare orders resourceVersions. Those that have no order are equal.
func Compare(a, b string) int {
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		return 0
	}
	return order
}
