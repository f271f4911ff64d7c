// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestServicePortsAreNotDuplicates(t *testing.T) {
	const ports = `[{name: http, port: 80, protocol: TCP, targetPort: http}, {name: metrics, port: 9090, protocol: TCP, targetPort: metrics}]`
	two := object(t, `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: `+ports+`}}`)
	s := newFixture(t, object(t, web), object(t, appConfig), object(t, database), two)
	for _, step := range s.plan().Steps {
		if step.Kind != "Service" {
			continue
		}
		if diff := cmp.Diff(two.Object["spec"].(map[string]any)["ports"], step.Apply.Object["spec"].(map[string]any)["ports"]); diff != "" {
			t.Errorf("want -, got +:\n%s", diff)
		}
		return
	}
	t.Error("Service was not copied")
}
