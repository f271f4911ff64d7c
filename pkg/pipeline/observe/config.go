// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
)

// Config is what an Observer needs. All fields are required unless their comment says otherwise.
type Config struct {
	// Catalogue knows the types that the cluster serves. Somebody else runs it.
	Catalogue Catalogue
	// Definitions reads CustomResourceDefinitions, whole objects; Instances reads those of all types, their metadata.
	Definitions, Instances watch.Reader
	// Changed is called when the State of some pipeline may have changed for another reason than single changes of objects. It must
	// return quickly; nil: nobody is told.
	Changed func()
	// Clock says when failed lists are made again; nil: the real one.
	Clock clock.WithTicker
}

// Catalogue knows the types that the cluster serves.
type Catalogue interface {
	// Snapshot is nil while nothing is known.
	Snapshot() *watch.Snapshot
	// Subscribe has changed called with each snapshot that comes from now on.
	Subscribe(changed func(*watch.Snapshot))
}

var _ Catalogue = &watch.Catalogue{}

// Target is told what there is. What is told again is no news to it: objects come more than once.
type Target interface {
	// Upsert tells how an object is.
	Upsert(it item.Item, how ledger.Urgency)
	// Remove tells that an object is gone.
	Remove(key item.Key)
	// Retain tells that of a type there are no objects but those present. Those of CustomResourceDefinitions have no apiVersion and
	// objectKind here.
	Retain(kind item.Kind, apiVersion, objectKind string, present func(item.Key) bool)
	// RetainTypes tells that there are no objects of types but those kept, with the names that they have in Retain.
	RetainTypes(keep func(kind item.Kind, apiVersion, objectKind string) bool)
}

// State is what is known of what a pipeline selects.
type State struct {
	// WatchedTypes is how many types of instances are selected, by watches or polls.
	WatchedTypes int
	// Objects is how many definitions and instances there are.
	Objects int64
	// Failures are sentences that say which types cannot be listed or watched, and why.
	Failures []string
	// Listed says that everything selected has been listed since that was last needed: when it was selected, or its watch began anew.
	// What Observer.List does makes no difference.
	Listed bool
}
