// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// Values selects whether the values of Secrets are shown. Values of hidden steps are never shown.
type Values int

const (
	// HideSecrets shows the keys of Secrets without values.
	HideSecrets Values = iota
	// ShowSecrets shows the values of Secrets, too.
	ShowSecrets
)

// configMaps are shown only if the catalog's workloads need them.
var configMaps = schema.GroupKind{Kind: "ConfigMap"}

// hide hides the steps of objects that the catalog's editor does not consent to share: custom resources, which the role
// view does not include, and ConfigMaps that only patches or spec.include of the environment reference.
func (p *Plan) hide() {
	consented := sets.New[Key]()
	for _, record := range p.Index {
		if !record.ByPatches {
			consented.Insert(recordKey(&record))
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		s.Hidden = IsCustomResource(s.GroupKind) || s.GroupKind == configMaps && !consented.Has(s.Key)
	}
}

// Changes returns what a sync would change, in order of execution, including objects in conflict, objects that it must
// leave alone, and objects that no longer exist in the source.
func (p *Plan) Changes(values Values) []v1alpha1.ObjectChange {
	var list []v1alpha1.ObjectChange
	for _, s := range p.Steps {
		change := s.objectChange(values)
		switch {
		case p.refusal(s) != "":
			change.ChangeType, change.Refusal = v1alpha1.ChangeChanged, p.refusal(s)
		case p.missing(s) != "":
			change.ChangeType, change.Refusal = v1alpha1.ChangeRemoved, p.missing(s)
		case p.conflict(s, values) != nil:
			change.ChangeType, change.Fields = v1alpha1.ChangeChanged, p.conflict(s, values)
		case change.ChangeType == "":
			continue
		}
		list = append(list, change)
	}
	return list
}

func (s Step) objectChange(values Values) v1alpha1.ObjectChange {
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
			change.Fields = append(change.Fields, s.fieldChange(difference, values))
		}
	}
	return change
}

func (s Step) fieldChange(difference diff.Difference, values Values) v1alpha1.FieldChange {
	field := v1alpha1.FieldChange{
		Field: difference.Path.String(), ChangeType: v1alpha1.ChangeType(difference.Change), Owners: difference.Before,
	}
	s.setValues(&field, difference, s.After, values)
	return field
}

// setValues sets the values of a field before the step and in after, unless they must not be shown.
func (s Step) setValues(field *v1alpha1.FieldChange, at diff.Difference, after *unstructured.Unstructured, values Values) {
	if s.Hidden || s.GroupKind == secrets && values == HideSecrets {
		field.Hidden = true
		return
	}
	field.Before, field.After = at.ValueIn(s.Live), at.ValueIn(after)
}

// refusal returns why an object that should change is left alone, or an empty string.
func (p *Plan) refusal(s Step) string {
	for _, failure := range slices.Concat(p.NotOurs, p.Terminating) {
		if failure.Type == s.Kind && failure.Name == s.Name {
			return failure.Message
		}
	}
	return ""
}

// missing returns the message for a copy that stays although the source no longer has the object, or an empty string.
func (p *Plan) missing(s Step) string {
	for _, failure := range p.Missing {
		if s.Verb == Leave && failure.Reason == v1alpha1.ReasonSourceMissing && failure.Type == s.Kind && failure.Name == s.Name {
			return failure.Message + ", and the copy stays"
		}
	}
	return ""
}

// conflict returns the fields of a workload that are in conflict.
func (p *Plan) conflict(s Step, values Values) []v1alpha1.FieldChange {
	for _, conflict := range p.Conflicts {
		if (v1alpha1.WorkloadReference{Kind: conflict.Kind, Name: conflict.Name}) != s.workload() {
			continue
		}
		var fields []v1alpha1.FieldChange
		for _, field := range conflict.Fields {
			shown := v1alpha1.FieldChange{Field: field.Field, ChangeType: v1alpha1.ChangeChanged, Owners: field.Managers, Conflict: true}
			if path, err := fieldpath.Parse(field.Field); err == nil {
				s.setValues(&shown, diff.Difference{Path: path}, s.Offered, values)
			}
			fields = append(fields, shown)
		}
		return fields
	}
	return nil
}
