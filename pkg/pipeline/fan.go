// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"k8s.io/utils/ptr"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
	"github.com/configbutler/slipstream/pkg/pipeline/observe"
)

// fan tells the ledgers of all sinks of a pipeline what there is.
type fan struct {
	ledgers []*ledger.Ledger
	changed func()
}

var _ observe.Target = &fan{}

// fanOf tells the sinks that a pipe has now.
func fanOf(p *pipe) *fan {
	f := &fan{changed: p.changed}
	for _, s := range p.sinks {
		f.ledgers = append(f.ledgers, s.ledger)
	}
	return f
}

// Upsert says how an object is now.
func (f *fan) Upsert(it item.Item, how ledger.Urgency) {
	for _, l := range f.ledgers {
		l.Upsert(it, how)
	}
	f.changed()
}

// Remove says that an object is gone.
func (f *fan) Remove(key item.Key) {
	for _, l := range f.ledgers {
		l.Remove(key)
	}
	f.changed()
}

// Retain says which objects of a type there are.
func (f *fan) Retain(kind item.Kind, apiVersion, objectKind string, present func(item.Key) bool) {
	for _, l := range f.ledgers {
		l.Retain(kind, apiVersion, objectKind, present)
	}
	f.changed()
}

// RetainTypes says which types there are.
func (f *fan) RetainTypes(keep func(kind item.Kind, apiVersion, objectKind string) bool) {
	for _, l := range f.ledgers {
		l.RetainTypes(keep)
	}
	f.changed()
}

// selectionOf is what a pipeline selects.
func selectionOf(spec *v1alpha1.SyncPipelineSpec) observe.Selection {
	out := observe.Selection{Poll: spec.Mode == v1alpha1.PipelineModePoll}
	if definitions := &spec.CustomResourceDefinitions; ptr.Deref(definitions.Enabled, true) {
		out.Definitions = &observe.DefinitionFilter{Include: definitions.Include, Exclude: definitions.Exclude}
	}
	if instances := &spec.Instances; ptr.Deref(instances.Enabled, true) {
		out.Instances = &observe.InstanceFilter{Resources: instances.Resources, Exclude: instances.Exclude}
	}
	return out
}
