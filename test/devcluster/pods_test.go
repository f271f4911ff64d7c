// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster_test

import (
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
)

// failingJob is a Job whose only Pod fails.
const failingJob = `
apiVersion: batch/v1
kind: Job
metadata: {name: fails}
spec:
  backoffLimit: 0
  template:
    metadata: {labels: {` + devcluster.FailingLabel + `: "true"}}
    spec: {restartPolicy: Never, containers: [{name: main, image: none}]}
`

func TestPods(t *testing.T) {
	cluster := clustertest.Start(t, devcluster.Options{Pods: true})
	admin := cluster.Kubectl(cluster.Admin())
	run := func(t *testing.T, arguments ...string) {
		t.Helper()
		if _, err := admin.Run(t.Context(), arguments...); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("ReadinessOfDeployments", func(t *testing.T) {
		run(t, "create", "deployment", "web", "--image=none", "--replicas=3")
		run(t, "rollout", "status", "deployment/web", "--timeout="+deadline.String())
		run(t, "label", "pods", "--selector=app=web", devcluster.UnreadyLabel+"=true")
		run(t, "wait", "deployment/web", "--for=jsonpath={.status.unavailableReplicas}=3", "--timeout="+deadline.String())
		run(t, "delete", "pods", "--selector=app=web", "--timeout="+deadline.String())
		run(t, "rollout", "status", "deployment/web", "--timeout="+deadline.String())
	})

	t.Run("Jobs", func(t *testing.T) {
		run(t, "create", "job", "succeeds", "--image=none")
		run(t, "wait", "job/succeeds", "--for=condition=Complete", "--timeout="+deadline.String())
		if _, err := admin.Feed(t.Context(), failingJob, "apply", "-f", "-"); err != nil {
			t.Fatal(err)
		}
		run(t, "wait", "job/fails", "--for=condition=Failed", "--timeout="+deadline.String())
	})

	t.Run("UnreadyLabelInTemplate", func(t *testing.T) {
		run(t, "run", "waits", "--image=none", "--labels="+devcluster.UnreadyLabel+"=true")
		run(t, "wait", "pod/waits", "--for=condition=Ready=False", "--timeout="+deadline.String())
		run(t, "wait", "pod/waits", "--for=jsonpath={.status.phase}=Running", "--timeout="+deadline.String())
	})
}
