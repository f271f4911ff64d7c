// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/test/testkit"
)

var alice = types.NamespacedName{Namespace: environmenttest.Teams, Name: "alice"}

const (
	starting = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, generation: 1}
spec: {replicas: 3}
status: {observedGeneration: 1, replicas: 3, updatedReplicas: 3, readyReplicas: 1, availableReplicas: 1}
`
	up = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, generation: 1}
spec: {replicas: 3, progressDeadlineSeconds: 600}
status:
  observedGeneration: 1
  replicas: 3
  updatedReplicas: 3
  readyReplicas: 3
  availableReplicas: 3
  conditions:
  - {type: Available, status: "True"}
  - {type: Progressing, status: "True", reason: NewReplicaSetAvailable}
`
	stuck = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, generation: 1}
spec: {replicas: 1}
status:
  observedGeneration: 1
  replicas: 1
  updatedReplicas: 1
  conditions:
  - {type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: "ReplicaSet \"web-1\" has timed out progressing."}
`
	forbidden = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {replicas: 1}
status:
  conditions:
  - {type: Progressing, status: "False", message: less}
  - {type: ReplicaFailure, status: "True", message: "pods \"web-1\" is forbidden: exceeded quota: pods"}
`
	migrated = "{apiVersion: batch/v1, kind: Job, metadata: {name: migrate}, status: {conditions: [{type: Complete, status: 'True'}]}}"
	broken   = `
apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
status:
  conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: Job has reached the specified backoff limit}]
`
	daemons = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, generation: 2}
status: {observedGeneration: 2, desiredNumberScheduled: 5, currentNumberScheduled: 5, updatedNumberScheduled: 5, numberReady: 2}
`
	stateful = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, generation: 1}
spec: {replicas: 2}
status: {observedGeneration: 1, replicas: 2, readyReplicas: 2, currentReplicas: 1, currentRevision: a, updateRevision: b}
`
)

func TestOf(t *testing.T) {
	for name, test := range map[string]struct {
		object string
		want   string
	}{
		"a Deployment that has come up": {up, ""},
		"one that comes up":             {starting, "Deployment web has 1 of 3 ready"},
		"one that no controller has observed": {
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, generation: 1}}", "Deployment web has 0 of 1 ready",
		},
		"one that has changed since":    {strings.Replace(up, "generation: 1", "generation: 2", 1), "Deployment web is being rolled out"},
		"one that takes too long":       {stuck, `Deployment web has 0 of 1 ready: ReplicaSet "web-1" has timed out progressing.`},
		"one whose Pods are not let in": {forbidden, `Deployment web has 0 of 1 ready: pods "web-1" is forbidden: exceeded quota: pods`},
		"one that goes": {
			strings.Replace(up, "name: web", `name: web, deletionTimestamp: "2026-11-21T00:00:00Z", finalizers: [x]`, 1),
			"Deployment web is being deleted",
		},
		"one that says a lot":    {strings.Replace(forbidden, "web-1", strings.Repeat("x", 500), 1), ""},
		"one of no replicas":     {strings.ReplaceAll(up, "eplicas: 3", "eplicas: 0"), ""},
		"a StatefulSet":          {stateful, "StatefulSet db is being rolled out"},
		"a DaemonSet":            {daemons, "DaemonSet agent has 2 of 5 ready"},
		"a Job that is done":     {migrated, ""},
		"a Job that has failed":  {broken, "Job migrate has failed: Job has reached the specified backoff limit"},
		"a Job before it begins": {"{apiVersion: batch/v1, kind: Job, metadata: {name: migrate}}", "Job migrate has not started"},
		"a CronJob":              {"{apiVersion: batch/v1, kind: CronJob, metadata: {name: report}}", ""},
		"a ReplicaSet": {
			"{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: old}, spec: {replicas: 1}}", "ReplicaSet old has 0 of 1 ready",
		},
		"what is no status": {
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, status: {conditions: none}}",
			"Deployment web has a status that cannot be read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.create(s.mine(test.object))
			s.runs()
			count, troubles := s.watcher.Of(s.environment)
			got := strings.Join(troubles, "\n")
			if name == "one that says a lot" {
				if len(got) != 400 {
					t.Errorf("%d bytes: %s", len(got), got)
				}
				return
			}
			want := v1alpha1.WorkloadsReady{Total: 1}
			if test.want == "" {
				want.Ready = 1
			}
			if *count != want || got != test.want {
				t.Errorf("%v, %q; want %v, %q", *count, got, want, test.want)
			}
		})
	}
}

func TestForeignWorkloadsAreNotCounted(t *testing.T) {
	for name, text := range map[string]string{
		"of another environment of the name": withMetadata("labels: {configbutler.ai/environment-uid: another}"),
		"of a Branch in the target":          withMetadata("labels: {configbutler.ai/environment: alice-fix}"),
		"copied by hand somewhere else":      withMetadata("namespace: elsewhere"),
		"of a controller": withMetadata(
			"ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: report, uid: x, controller: true}]"),
		"half marked": withMetadata("labels: {configbutler.ai/environment-namespace: ''}"),
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.create(s.mine(text))
			s.create(s.mine(migrated))
			s.runs()
			s.is(1, 1)
		})
	}
}

func withMetadata(text string) string {
	return strings.Replace(starting, "name: web", "name: web, "+text, 1)
}

func TestChanges(t *testing.T) {
	s := newFixture(t)
	s.create(s.mine(starting))
	s.runs()
	s.expectNotification(alice)
	s.is(0, 1, "Deployment web has 1 of 3 ready")

	t.Run("becomes ready", func(t *testing.T) {
		s.update(s.mine(up))
		s.expectNotification(alice)
		s.is(1, 1)
	})
	t.Run("says nothing new", func(t *testing.T) {
		s.update(s.mine(strings.Replace(up, "name: web", "name: web, annotations: {seen: now}", 1)))
		s.create(s.mine(migrated))
		s.expectNotification(alice) // Of the Job.
		s.is(2, 2)
		s.expectNoNotification()
	})
	t.Run("many at once", func(t *testing.T) {
		for _, text := range []string{daemons, stateful, "{apiVersion: batch/v1, kind: CronJob, metadata: {name: report}}"} {
			s.create(s.mine(text))
		}
		s.is(3, 5, "DaemonSet agent has 2 of 5 ready", "StatefulSet db is being rolled out")
		s.expectNotification(alice)
		if more := len(s.notified); more > 0 {
			t.Errorf("%d more notifications within a second", more)
		}
	})
	t.Run("deleted by hand", func(t *testing.T) {
		s.delete(s.mine(up))
		s.expectNotification(alice)
		s.is(2, 4, "DaemonSet agent has 2 of 5 ready", "StatefulSet db is being rolled out")
	})
	t.Run("taken out of the environment", func(t *testing.T) {
		s.update(s.mine(strings.Replace(daemons, "name: agent", "name: agent, labels: {configbutler.ai/environment-uid: ''}", 1)))
		s.expectNotification(alice)
		s.is(2, 3, "StatefulSet db is being rolled out")
	})
}

// TestNotifiesAfterSync checks that a caller that got an unknown count is notified once the count is known, also for an environment without
// workloads.
func TestNotifiesAfterSync(t *testing.T) {
	s := newFixture(t)
	var may atomic.Bool
	s.cluster.PrependReactor("list", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		if may.Load() {
			return false, nil, nil
		}
		return true, nil, errors.New("not yet")
	})
	s.run()
	testkit.EventuallyTrue(s, "an error", func() bool {
		count, troubles := s.watcher.Of(s.environment)
		return count == nil && len(troubles) == 1
	})
	may.Store(true)
	s.expectNotification(alice)
	s.is(0, 0)
	s.expectNoNotification()
}

func TestListFailures(t *testing.T) {
	s := newFixture(t)
	if count, troubles := s.watcher.Of(s.environment); count != nil || len(troubles) > 0 {
		t.Errorf("before Run: %v, %q", count, troubles)
	}
	s.cluster.PrependReactor("list", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("it must not")
	})
	s.run()
	testkit.EventuallyTrue(s, "an error", func() bool {
		count, troubles := s.watcher.Of(s.environment)
		return count == nil && len(troubles) == 1 && strings.HasPrefix(troubles[0], "the server cannot list jobs.batch: ") &&
			strings.HasSuffix(troubles[0], "it must not")
	})
}

// TestStartsWatchesOnDemand checks that a server without environments sends no requests, for which it may lack permission.
func TestStartsWatchesOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t)
		s.run()
		synctest.Wait()
		if actions := s.cluster.Actions(); len(actions) > 0 {
			t.Errorf("requests before the first environment: %v", actions)
		}
		s.watcher.Of(s.environment)
		synctest.Wait()
		if len(s.cluster.Actions()) == 0 {
			t.Error("no request after the first environment")
		}
	})
}
