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

// maxMessage is the number of bytes stored of a commit's message.
const maxMessage = 512

// Object identifies an object, independent of the version of its type.
type Object struct {
	schema.GroupResource
	Namespace string
	Name      string
}

// Commit is a commit in a destination.
type Commit struct {
	Destination types.NamespacedName `json:"destination"`
	// SHA is the hash of the commit in hexadecimal.
	SHA string `json:"sha"`
	// Time is the committer time.
	Time time.Time `json:"time"`
	// Message is the first line of the message, cut to maxMessage bytes.
	Message string `json:"message,omitempty"`
	// URL links to the commit; empty if the Git host is not known.
	URL string `json:"url,omitempty"`
}

// Entry states that a commit holds versions of an object.
type Entry struct {
	Object Object `json:"object"`
	Commit Commit `json:"commit"`
	// First and Last are the resourceVersions of the first and the last change of the object in the commit. First is empty
	// if the commit comes from a comparison of the object, at version Last, with the branch.
	First string `json:"first,omitempty"`
	Last  string `json:"last"`
	// Created is true if the commit adds the object's file, Removed if it deletes it.
	Created bool `json:"created,omitempty"`
	Removed bool `json:"removed,omitempty"`
}

// Scope selects the objects that entries are stored for: those of some types in some namespaces.
type Scope struct {
	Resources  []schema.GroupResource `json:"resources,omitempty"`
	Namespaces []string               `json:"namespaces,omitempty"`
}

func (s Scope) includes(o Object) bool {
	return slices.Contains(s.Namespaces, o.Namespace) && slices.Contains(s.Resources, o.GroupResource)
}

// union returns the types and the namespaces of both scopes, sorted.
func (s Scope) union(other Scope) Scope {
	return Scope{
		Resources:  distinct(append(slices.Clone(s.Resources), other.Resources...), schema.GroupResource.String),
		Namespaces: distinct(append(slices.Clone(s.Namespaces), other.Namespaces...), strings.Clone),
	}
}

func (s Scope) equals(other Scope) bool {
	return slices.Equal(s.Resources, other.Resources) && slices.Equal(s.Namespaces, other.Namespaces)
}

// distinct sorts values by their strings and drops duplicates.
func distinct[T comparable](values []T, text func(T) string) []T {
	slices.SortFunc(values, func(a, b T) int { return strings.Compare(text(a), text(b)) })
	return slices.Compact(values)
}

// bounded returns the entry with its message cut to what is stored.
func (e Entry) bounded() Entry {
	if len(e.Commit.Message) > maxMessage {
		e.Commit.Message = strings.ToValidUTF8(e.Commit.Message[:maxMessage], "")
	}
	return e
}

// Compare orders entries by the last change that they hold, and entries of the same change by their commits.
func (e Entry) Compare(other Entry) int {
	a, b := e.Commit, other.Commit
	return cmp.Or(Compare(e.Last, other.Last), a.Time.Compare(b.Time),
		strings.Compare(a.Destination.String(), b.Destination.String()), strings.Compare(a.SHA, b.SHA))
}

// Compare orders resourceVersions. It returns 0 for those that cannot be compared.
func Compare(a, b string) int {
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		return 0
	}
	return order
}
