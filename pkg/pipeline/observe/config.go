// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
)

// Config configures an Observer. All fields are required unless their comment says otherwise.
type Config struct {
	// Definitions reads whole CustomResourceDefinitions, Instances the metadata of objects of all types.
	Definitions, Instances watch.Reader
	// Changed is called when the State of a pipeline may have changed, except for changes of single objects. It must return quickly. Optional.
	Changed func()
	// Clock schedules retries of lists; nil means the real one.
	Clock clock.WithTicker
}

// Target receives the objects that a pipeline selects. An object can be reported more than once.
type Target interface {
	// Upsert reports the current state of an object.
	Upsert(it item.Item, urgency ledger.Urgency)
	// Remove reports the deletion of an object.
	Remove(key item.Key)
	// Retain reports that no objects of a type exist but those present. For CustomResourceDefinitions, apiVersion and objectKind are empty.
	Retain(kind item.Kind, apiVersion, objectKind string, present func(item.Key) bool)
	// RetainTypes reports that no objects exist of types but those kept, which are named as in Retain.
	RetainTypes(keep func(kind item.Kind, apiVersion, objectKind string) bool)
}

// State is the state of the observation of a pipeline.
type State struct {
	// WatchedTypes is the number of selected types of instances, watched or polled.
	WatchedTypes int
	// Objects is the number of existing definitions and instances that are selected.
	Objects int64
	// Failures describe the types that cannot be listed or watched, in sentences.
	Failures []string
	// Listed reports whether everything selected was listed since it was selected, or since its watch was last restarted. Calls of
	// Observer.List do not count.
	Listed bool
}
