// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// resolution is what has been decided about conflicts. Of decisions about the same field the newest counts.
func (s *situation) resolution() v1alpha1.ConflictResolutionSpec {
	d := decisions{sets.New[decided](), v1alpha1.ConflictResolutionSpec{}}
	for _, request := range slices.Backward(s.environment.Status.PendingRequests) {
		if request.Resolve != nil {
			d.add(request.Resolve)
		}
	}
	return d.all
}

// decisions are what has been decided, and about which fields.
type decisions struct {
	about sets.Set[decided]
	all   v1alpha1.ConflictResolutionSpec
}

// decided is a field that has been decided about; without a field, all of the workload.
type decided struct {
	workload v1alpha1.WorkloadReference
	field    string
}

// add takes up a decision that is older than those before.
func (d *decisions) add(decision *v1alpha1.ConflictResolutionSpec) {
	about := d.about.Clone()
	d.all.Keep = append(d.all.Keep, d.news(decision.Keep, about)...)
	d.all.Take = append(d.all.Take, d.news(decision.Take, about)...)
	d.about = about
}

// news are the choices about what nobody has decided about later.
func (d *decisions) news(choices []v1alpha1.ConflictChoice, about sets.Set[decided]) []v1alpha1.ConflictChoice {
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
