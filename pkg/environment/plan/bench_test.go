// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
)

// BenchmarkPlan plans a sync of 100 workloads, each with a ConfigMap and a Secret of its own, of which half have changed.
func BenchmarkPlan(b *testing.B) {
	var objects []*unstructured.Unstructured
	for i := range 100 {
		name := fmt.Sprint("web-", i)
		objects = append(objects,
			object(b, environmenttest.Deployment(name, fmt.Sprintf("envFrom: [{configMapRef: {name: %[1]s}}, {secretRef: {name: %[1]s}}]", name))),
			object(b, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {level: info}}", name)),
			object(b, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s}, data: {password: aHVudGVyMg==}}", name)))
	}
	s := newFixture(b, objects...)
	s.sync()
	s.Revision++
	for i, o := range objects {
		if i%2 == 0 {
			o.SetAnnotations(map[string]string{"changed": "yes"})
		}
	}
	s.Live = s.target.list()
	for b.Loop() {
		p, err := planner.Plan(b.Context(), s.Input)
		if err != nil || len(p.Summaries()) != 150 {
			b.Fatalf("%d objects change, error %v", len(p.Summaries()), err)
		}
	}
}
