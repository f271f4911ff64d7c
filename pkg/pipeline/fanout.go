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

// fanout reports observed objects to the ledgers of all sinks of a pipeline.
type fanout struct {
	ledgers []*ledger.Ledger
	changed func()
}

var _ observe.Target = &fanout{}

// fanOf returns a fanout to the current sinks.
func fanOf(p *pipeline) *fanout {
	f := &fanout{changed: p.changed}
	for _, s := range p.sinks {
		f.ledgers = append(f.ledgers, s.ledger)
	}
	return f
}

// Upsert reports the current state of an object.
func (f *fanout) Upsert(it item.Item, how ledger.Urgency) {
	for _, l := range f.ledgers {
		l.Upsert(it, how)
	}
	f.changed()
}

// Remove reports the deletion of an object.
func (f *fanout) Remove(key item.Key) {
	for _, l := range f.ledgers {
		l.Remove(key)
	}
	f.changed()
}

// Retain reports the existing objects of a type.
func (f *fanout) Retain(kind item.Kind, apiVersion, objectKind string, present func(item.Key) bool) {
	for _, l := range f.ledgers {
		l.Retain(kind, apiVersion, objectKind, present)
	}
	f.changed()
}

// RetainTypes reports the selected types.
func (f *fanout) RetainTypes(keep func(kind item.Kind, apiVersion, objectKind string) bool) {
	for _, l := range f.ledgers {
		l.RetainTypes(keep)
	}
	f.changed()
}

// selectionOf returns what a pipeline selects.
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
