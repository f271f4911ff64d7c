// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// services are found by what they say themselves, and lead to more: Ingresses, and their Secrets.
var services = schema.GroupKind{Kind: "Service"}

// lastApplied are the Services that were applied last, if those of the source are withheld: they say what else the environment has.
func (s *Situation) lastApplied() []*unstructured.Unstructured {
	if !s.Withheld.Has(services) {
		return nil
	}
	var found []*unstructured.Unstructured
	for key, object := range s.Base {
		if key.GroupKind == services {
			found = append(found, object)
		}
	}
	return found
}

// withhold takes down that an object is not copied although something needs it. What workloads can do without is no failure, because
// the source may not have it.
func (d *draft) withhold(key Key, optional bool) {
	why := d.Withheld[v1alpha1.DependencyType(key.Kind)]
	if optional {
		d.report(fmt.Sprintf("%s is not copied from %s, if it is there: %s", key, d.SourceNamespace, why.Message))
		return
	}
	d.failSource(key, why.Reason, why.Message)
}

// withholdServices says that Services are withheld where none is known that something needs.
func (d *draft) withholdServices() {
	why, ok := d.Withheld[v1alpha1.DependencyService]
	if !ok || slices.ContainsFunc(d.plan.Missing, func(f v1alpha1.ObjectFailure) bool { return f.Type == services.Kind }) {
		return
	}
	d.plan.Missing = append(d.plan.Missing, v1alpha1.ObjectFailure{
		Type: services.Kind, Namespace: d.SourceNamespace, Name: "*", Reason: why.Reason,
		Message: fmt.Sprintf("Failed to sync the Services of %s - %s", d.SourceNamespace, why.Message),
	})
}
