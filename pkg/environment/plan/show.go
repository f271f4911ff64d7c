// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// Values says whose values are shown, of steps that are not hidden.
type Values int

const (
	// HideSecrets shows the names of what a Secret holds and no values.
	HideSecrets Values = iota
	// ShowSecrets shows the values of Secrets as well.
	ShowSecrets
)

// configMaps are shown as far as the catalog's workloads need them.
var configMaps = schema.GroupKind{Kind: "ConfigMap"}

// hide has steps hidden that are about what the catalog's editor does not consent to have shown: custom resources, which the role view
// does not let people read, and ConfigMaps that only patches or spec.include of the environment name.
func (d *draft) hide() {
	consented := sets.New[Key]()
	for _, record := range d.plan.Index {
		if !record.ByPatches {
			consented.Insert(recordKey(&record))
		}
	}
	for i := range d.plan.Steps {
		s := &d.plan.Steps[i]
		s.Hidden = IsCustomResource(s.GroupKind) || s.GroupKind == configMaps && !consented.Has(s.Key)
	}
}

// Changes are what a sync would change, in the order in which it does, what it would if somebody decided so, and what it cannot bring
// because the source does not have it any more.
func (p *Plan) Changes(values Values) []v1alpha1.ObjectChange {
	var list []v1alpha1.ObjectChange
	for _, s := range p.Steps {
		change := s.show(values)
		switch {
		case p.refusal(s) != "":
			change.ChangeType, change.Refusal = v1alpha1.ChangeChanged, p.refusal(s)
		case p.missing(s) != "":
			change.ChangeType, change.Refusal = v1alpha1.ChangeRemoved, p.missing(s)
		case p.conflict(s) != nil:
			change.ChangeType, change.Fields = v1alpha1.ChangeChanged, p.conflict(s)
		case change.ChangeType == "":
			continue
		}
		list = append(list, change)
	}
	return list
}

func (s Step) show(values Values) v1alpha1.ObjectChange {
	object := s.Live
	if s.Apply != nil {
		object = s.Apply
	}
	change := v1alpha1.ObjectChange{Action: s.Action, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name, ChangeType: s.ChangeType()}
	if object != nil {
		change.APIVersion = object.GetAPIVersion()
	}
	for _, difference := range s.Changes {
		if isContent(difference) {
			change.Fields = append(change.Fields, s.field(difference, values))
		}
	}
	return change
}

func (s Step) field(difference diff.Difference, values Values) v1alpha1.FieldChange {
	field := v1alpha1.FieldChange{
		Field: difference.Path.String(), ChangeType: v1alpha1.ChangeType(difference.Change), Owners: difference.Before,
	}
	if s.Hidden || s.GroupKind == secrets && values == HideSecrets {
		field.Hidden = true
		return field
	}
	field.Before, field.After = valueAt(s.Live, difference.Path), valueAt(s.After, difference.Path)
	return field
}

// valueAt is a value as JSON, nil if there is none.
func valueAt(object *unstructured.Unstructured, path fieldpath.Path) *string {
	if object == nil {
		return nil
	}
	value, ok := path.Lookup(object.Object)
	if !ok {
		return nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return new(string(text))
}

// refusal says why an object is left alone that should be another.
func (p *Plan) refusal(s Step) string {
	for _, failure := range slices.Concat(p.NotOurs, p.Leaving) {
		if failure.Type == s.Kind && failure.Name == s.Name {
			return failure.Message
		}
	}
	return ""
}

// missing says that the source does not have an object any more that something needs, and of which the copy stays.
func (p *Plan) missing(s Step) string {
	for _, failure := range p.Missing {
		if s.Verb == Leave && failure.Reason == v1alpha1.ReasonSourceMissing && failure.Type == s.Kind && failure.Name == s.Name {
			return failure.Message + ", and the copy stays"
		}
	}
	return ""
}

// conflict are the fields of a workload about which somebody has to decide.
func (p *Plan) conflict(s Step) []v1alpha1.FieldChange {
	for _, conflict := range p.Conflicts {
		if (v1alpha1.WorkloadReference{Kind: conflict.Kind, Name: conflict.Name}) != s.workload() {
			continue
		}
		var fields []v1alpha1.FieldChange
		for _, field := range conflict.Fields {
			fields = append(fields, v1alpha1.FieldChange{
				Field: field.Field, ChangeType: v1alpha1.ChangeChanged, Owners: field.Managers, Conflict: true,
			})
		}
		return fields
	}
	return nil
}
