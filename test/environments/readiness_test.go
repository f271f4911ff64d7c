// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"fmt"
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// batches are two Jobs: the Pod of import succeeds, and that of migrate fails.
const batches = `
apiVersion: batch/v1
kind: Job
metadata: {name: import}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: shop/import}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec:
  backoffLimit: 0
  template:
    metadata: {labels: {` + devcluster.FailingLabel + `: "true"}}
    spec: {restartPolicy: Never, containers: [{name: main, image: shop/migrate}]}
---
`

// podReadiness is the JSONPath of the condition Ready of Pods.
const podReadiness = `{.items[*].status.conditions[?(@.type=="Ready")].status}`

// TestReadiness checks that the readiness of environments follows their Pods, which kwok runs.
func TestReadiness(t *testing.T) {
	t.Parallel()
	s := newTestClusterOf(t, devcluster.Options{Parts: []string{people.Readiness}, Pods: true})
	t.Run("an environment is ready while its Pods are", s.testReadyPods)
	t.Run("an environment with a Job that fails is not ready", s.testFailedJob)
}

// testReadyPods lets Pods become ready and unready, while they run and when a sync replaces them.
func (s *testCluster) testReadyPods(t *testing.T) {
	c := s.newFixture(t, "ready", shop, workloads("api", "worker"))
	c.mustApply(t, "alice")
	c.mustSync(t, "alice", all)
	c.waitForReady(t, "alice", 2)
	if pods := c.admin.Run(t, "get", "pods", "-n", c.target, "--output=jsonpath="+podReadiness); pods != "True True" {
		t.Errorf("the environment is ready, and its Pods are %q", pods)
	}

	c.dave.Run(t, "label", "pods", "-n", c.target, "--selector=app=api", devcluster.UnreadyLabel+"=true")
	c.waitForNotReady(t, "alice", "1 of 2 workloads not ready: Deployment api has 0 of 1 ready")
	c.waitForStatus(t, "alice", "Synced, 1 of 2 workloads not ready")
	c.dave.Run(t, "delete", "pods", "-n", c.target, "--selector=app=api", "--timeout=10m")
	c.waitForReady(t, "alice", 2)

	const progress = `{"spec":{"progressDeadlineSeconds":%d,"template":{"metadata":{"labels":{%q:%s}}}}}`
	patch(t, c.ann, c.source, "api", fmt.Sprintf(progress, 1, devcluster.UnreadyLabel, `"true"`))
	c.waitForRevision(t, "alice", 2)
	c.mustSync(t, "alice", all)
	c.waitForNotReady(t, "alice", "1 of 2 workloads not ready: Deployment api is being rolled out: ReplicaSet", "has timed out progressing")
	patch(t, c.ann, c.source, "api", fmt.Sprintf(progress, 600, devcluster.UnreadyLabel, "null"))
	c.waitForRevision(t, "alice", 3)
	c.mustSync(t, "alice", all)
	c.waitForReady(t, "alice", 2)
}

// testFailedJob lets the Pod of a Job fail.
func (s *testCluster) testFailedJob(t *testing.T) {
	c := s.newFixture(t, "failed", batches, "workloads: [{kind: Job, name: import}, {kind: Job, name: migrate}]")
	c.mustApply(t, "alice")
	c.mustSync(t, "alice", all)
	c.waitForNotReady(t, "alice", "1 of 2 workloads not ready: Job migrate has failed: ")
}

// waitForReady waits until an environment is ready with a number of workloads.
func (c *fixture) waitForReady(t *testing.T, name string, workloads int32) {
	t.Helper()
	c.waitFor(t, name, "is ready", func(e *v1alpha1.Environment) error {
		all := v1alpha1.WorkloadsReady{Ready: workloads, Total: workloads}
		isReady, count := apimeta.IsStatusConditionTrue(e.Status.Conditions, v1alpha1.ConditionReady), e.Status.WorkloadsReady
		if !isReady || count == nil || *count != all || e.Status.State != "Synced" {
			return fmt.Errorf("%q, %+v ready: %+v", e.Status.State, count, e.Status.Conditions)
		}
		return nil
	})
}

// waitForNotReady waits until an environment is not ready because of its workloads, and its message contains texts.
func (c *fixture) waitForNotReady(t *testing.T, name string, texts ...string) {
	t.Helper()
	c.waitFor(t, name, "is not ready", func(e *v1alpha1.Environment) error {
		ready := apimeta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != v1alpha1.ReasonWorkloadsNotReady {
			return fmt.Errorf("%+v", ready)
		}
		for _, text := range texts {
			if !strings.Contains(ready.Message, text) {
				return fmt.Errorf("its message is %q, without %q", ready.Message, text)
			}
		}
		return nil
	})
}
