// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"fmt"
	"strings"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/apply"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// planSteps are the steps of a plan.
type planSteps struct {
	apply []apply.Step
	// planned[i] is the step that apply[i] was built from.
	planned []plan.Step
	all     []plan.Step
}

func stepsOf(p *plan.Plan) planSteps {
	s := planSteps{all: p.Steps}
	for _, step := range p.Steps {
		if step.Verb == plan.Leave {
			continue
		}
		s.planned = append(s.planned, step)
		s.apply = append(s.apply, apply.Step{
			Verb: apply.Verb(step.Verb), Live: step.Live, Removal: step.Removal, Apply: step.Apply, After: step.After,
		})
	}
	return s
}

// failureOf returns a refusal as records contain it.
func failureOf(refusal apply.Refusal) v1alpha1.ObjectFailure {
	place := ""
	if refusal.Namespace != "" {
		place = " of " + refusal.Namespace
	}
	said := refusal.Message
	if refusal.Field != "" && !strings.Contains(said, refusal.Field) {
		said = refusal.Field + ": " + said
	}
	return v1alpha1.ObjectFailure{
		Type: refusal.Kind, Namespace: refusal.Namespace, Name: refusal.Name, Reason: v1alpha1.ReasonRefused,
		Message: summary.Cut(fmt.Sprintf("%s '%s'%s: %s", refusal.Kind, refusal.Name, place, said), v1alpha1.MaxFailureBytes),
	}
}
