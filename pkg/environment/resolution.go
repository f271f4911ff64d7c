// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// resolution returns the decisions about conflicts. The newest decision about a field wins.
func (r requests) resolution() v1alpha1.ConflictResolutionSpec {
	d := decisions{sets.New[decided](), v1alpha1.ConflictResolutionSpec{}}
	for _, request := range slices.Backward(r) {
		if request.Resolve != nil {
			d.add(request.Resolve)
		}
	}
	return d.all
}

// decisions collects decisions, from the newest to the oldest.
type decisions struct {
	about sets.Set[decided]
	all   v1alpha1.ConflictResolutionSpec
}

// decided identifies a field with a decision, or the whole workload if the field is empty.
type decided struct {
	workload v1alpha1.WorkloadReference
	field    string
}

// add adds a decision that is older than those before.
func (d *decisions) add(decision *v1alpha1.ConflictResolutionSpec) {
	about := d.about.Clone()
	d.all.Keep = append(d.all.Keep, d.undecided(decision.Keep, about)...)
	d.all.Take = append(d.all.Take, d.undecided(decision.Take, about)...)
	d.about = about
}

// undecided returns the choices for fields without a newer decision.
func (d *decisions) undecided(choices []v1alpha1.ConflictChoice, about sets.Set[decided]) []v1alpha1.ConflictChoice {
	var out []v1alpha1.ConflictChoice
	for _, choice := range choices {
		of := decided{workload: v1alpha1.WorkloadReference{Kind: choice.Kind, Name: choice.Name}}
		if d.about.Has(of) {
			continue
		}
		if len(choice.Fields) == 0 {
			about.Insert(of)
			out = append(out, choice)
			continue
		}
		choice.Fields = slices.DeleteFunc(slices.Clone(choice.Fields), func(field string) bool {
			of.field = field
			about.Insert(of)
			return d.about.Has(of)
		})
		if len(choice.Fields) > 0 {
			out = append(out, choice)
		}
	}
	return out
}
