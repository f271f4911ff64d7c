// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/environment/plan"
)

const migration = `
apiVersion: batch/v1
kind: Job
metadata: {name: migration}
spec:
  parallelism: 1
  template: {spec: {restartPolicy: Never, containers: [{name: migration, image: "migration:1"}]}}
`

// TestJobsAreReplaced changes a Job of the source whose copy has fields added by the API server.
func TestJobsAreReplaced(t *testing.T) {
	const revision = " /metadata/labels/configbutler.ai~1revision"
	for name, tt := range map[string]struct {
		from, to string
		want     []string
		replaced bool
	}{
		"by another image": {
			from: "migration:1", to: "migration:2", replaced: true,
			want: []string{"update Job migration: the catalog offers it" + revision + " /spec/template/spec/containers[name=migration]/image"},
		},
		"by more at once": {
			from: "parallelism: 1", to: "parallelism: 2",
			want: []string{"update Job migration: the catalog offers it" + revision + " /spec/parallelism"},
		},
		"by nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, object(t, migration))
			s.sync()
			s.Revision++
			s.put(replaced(t, migration, tt.from, tt.to))
			var got []string
			for _, step := range s.sync().Steps {
				if step.Verb != plan.Leave {
					got = append(got, step.String())
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if replaced := s.target.replaced > 0; replaced != tt.replaced {
				t.Errorf("replaced: %v", replaced)
			}
		})
	}
}
