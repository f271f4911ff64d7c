// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	imageField  = "/spec/template/spec/containers[name=main]/image"
	memoryField = "/spec/template/spec/containers[name=main]/resources/limits/memory"
	// imageAndMemory is a patch that sets image and memory limit.
	imageAndMemory = `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":%q,"resources":{"limits":{"memory":%q}}}]}}}}`
	memoryOnly     = `{"spec":{"template":{"spec":{"containers":[{"name":"main","resources":{"limits":{"memory":%q}}}]}}}}`
	// declared is the patches field of a Branch that declares the image of the worker.
	declared = `patches:
  - target: {kind: Deployment, name: worker}
    type: StrategicMerge
    patch: '{spec: {template: {spec: {containers: [{name: main, image: "shop/worker:dave"}]}}}}'`
)

// testBranchConflicts changes image and memory of two workloads in the environment and in the source. One image is changed by
// a declared patch.
func (s *testCluster) testBranchConflicts(t *testing.T) {
	c := s.newFixture(t, "branched", shop, workloads("api", "worker"))
	c.mustApply(t, "alice", "type: Branch", "branchWorkloads: [{kind: Deployment, name: api}, {kind: Deployment, name: worker}]", declared)
	c.mustSync(t, "alice", all)
	c.expectImages(t, map[string]string{"api": "shop/api:1", "worker": "shop/worker:dave"})
	patch(t, s.dave, c.target, "api", fmt.Sprintf(imageAndMemory, "shop/api:dave", "1Gi"))
	patch(t, s.dave, c.target, "worker", fmt.Sprintf(memoryOnly, "1Gi"))

	for _, workload := range []string{"api", "worker"} {
		patch(t, s.ann, c.source, workload, fmt.Sprintf(imageAndMemory, "shop/"+workload+":2", "128Mi"))
	}
	c.waitForRevision(t, "alice", 2)
	c.waitForStatus(t, "alice", "2 workloads changed")
	before := s.objectsIn(t, c.target)
	record := c.sync(t, "alice", all)
	c.waitForState(t, record, v1alpha1.SyncStateConflicted)
	c.waitForStatus(t, "alice", "Conflict: 4 fields")
	c.expectUnchanged(t, c.target, before)
	dave := []string{s.dave.Name}
	want := []v1alpha1.WorkloadConflict{
		{Kind: "Deployment", Name: "api", Fields: []v1alpha1.FieldConflict{
			{Field: imageField, Managers: dave}, {Field: memoryField, Managers: dave},
		}},
		{Kind: "Deployment", Name: "worker", Fields: []v1alpha1.FieldConflict{
			{Field: imageField, Managers: []string{v1alpha1.FieldManager}}, {Field: memoryField, Managers: dave},
		}},
	}
	if diff := cmp.Diff(want, c.get(t, "alice").Status.Conflicts); diff != "" {
		t.Errorf("conflicts: want -, got +:\n%s", diff)
	}
	c.testConflictResolution(t, record)
}

// testConflictResolution keeps the images and takes the other fields. A declared field cannot be taken.
func (c *fixture) testConflictResolution(t *testing.T, record string) {
	t.Helper()
	c.expectRefused(t, c.dave, "environments/alice/resolve",
		`{"spec":{"keep":[{"kind":"Deployment","name":"api","fields":["/spec/paused"]}]}}`,
		"Invalid", "spec.keep[0].fields")
	c.expectRefused(t, c.dave, "environments/alice/resolve", `{"spec":{`+choices("take", imageField)+"}}", "Invalid", "spec.take[1].fields",
		"out of spec.patches")
	c.mustRequest(t, c.dave, "environments/alice/resolve", `{"spec":{`+choices("keep", imageField)+","+choices("take", memoryField)+"}}")
	mirrortest.Eventually(t, "the decisions are processed", func(context.Context) error {
		if c.record(t, record).Status.State == v1alpha1.SyncStateConflicted {
			return c.described(errors.New("the record is still Conflicted"))
		}
		return nil
	})
	c.waitForState(t, record, v1alpha1.SyncStateCompleted)
	c.waitForStatus(t, "alice", "Synced")
	c.expectImages(t, map[string]string{"api": "shop/api:dave", "worker": "shop/worker:dave"})
	objects := c.objectsIn(t, c.target)
	for _, workload := range []string{"api", "worker"} {
		if memory := text(container(t, objects["Deployment "+workload], "main"), "resources", "limits", "memory"); memory != "128Mi" {
			t.Errorf("memory limit of %s = %s, want 128Mi", workload, memory)
		}
	}
	c.mustSync(t, "alice", all)
	c.expectImages(t, map[string]string{"api": "shop/api:dave", "worker": "shop/worker:dave"})
}

// choices returns the JSON of a decision about one field of both workloads.
func choices(decision, field string) string {
	return fmt.Sprintf(`%q:[{"kind":"Deployment","name":"api","fields":[%q]},{"kind":"Deployment","name":"worker","fields":[%q]}]`,
		decision, field, field)
}
