// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// many is the number of workloads of a large catalog, kills how many times the server is killed while it syncs them.
const (
	many  = 100
	kills = 3
)

// testTargetRecreated deletes the target namespace.
func (s *testCluster) testTargetRecreated(t *testing.T) {
	c := s.newFixture(t, "rebuilt", shop, workloads("api", "worker"))
	c.mustApply(t, "alice", "createNamespace: false")
	c.mustSync(t, "alice", all)
	before := s.objectsIn(t, c.target).names()
	c.Run(t, "delete", "namespace", c.target, "--wait=false")
	mirrortest.Eventually(t, "the namespace is deleted", func(ctx context.Context) error {
		_, err := s.admin.Client.CoreV1().Namespaces().Get(ctx, c.target, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it still exists"))
	})
	c.waitForStatus(t, "alice", "Stalled: ")
	c.waitFor(t, "alice", "reports the missing namespace", func(e *v1alpha1.Environment) error {
		for _, condition := range e.Status.Conditions {
			if condition.Type == v1alpha1.ConditionStalled && condition.Reason == v1alpha1.ReasonTargetNotFound &&
				strings.Contains(condition.Message, c.target) {
				return nil
			}
		}
		return fmt.Errorf("conditions: %+v", e.Status.Conditions)
	})
	c.newTarget(t, c.target)
	c.waitFor(t, "alice", "is no longer stalled", func(e *v1alpha1.Environment) error {
		for _, condition := range e.Status.Conditions {
			if condition.Type == v1alpha1.ConditionStalled && condition.Status == metav1.ConditionTrue {
				return errors.New(condition.Message)
			}
		}
		return nil
	})
	c.mustSync(t, "alice", all)
	if after := s.objectsIn(t, c.target).names(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("objects: %q, want %q", after, before)
	}
}

// manyDeployments returns the Deployments of a large catalog for a version.
func manyDeployments(version int) (manifests string, names []string) {
	var out strings.Builder
	for i := range many {
		name := fmt.Sprintf("w%03d", i)
		out.WriteString(strings.NewReplacer("worker:1", name+":"+strconv.Itoa(version), "worker", name, "name: jobs", "name: settings").
			Replace(worker))
		names = append(names, name)
	}
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {level: info}}\n---\n" + out.String(), names
}

// testSyncInterrupted kills the server at random times during a large sync, which must complete.
func (s *testCluster) testSyncInterrupted(t *testing.T) {
	s.applySyncPolicy(t, "retry: {maxAttempts: 5, backoff: 1s, maxBackoff: 1s}") // A run that is interrupted counts as an attempt.
	defer s.applySyncPolicy(t)
	manifests, names := manyDeployments(1)
	c := s.newFixture(t, "interrupted", manifests, workloads(names...))
	c.mustApply(t, "alice")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	record := c.sync(t, "alice", all)
	for range kills {
		written := c.deployments(t)
		if written == many {
			break
		}
		enough := written + 1 + random.IntN((many-written)/2+1)
		mirrortest.Eventually(t, "the sync continues", func(context.Context) error {
			if written := c.deployments(t); written < enough {
				return c.described(fmt.Errorf("%d of %d written", written, enough))
			}
			return nil
		})
		s.restart(t, syscall.SIGKILL)
	}
	done := c.waitForState(t, record, v1alpha1.SyncStateCompleted)
	if written := c.deployments(t); written != many || problems(done) != "" || done.Status.Actor != "dave" {
		t.Errorf("%d of %d written, by %q: %s", written, many, done.Status.Actor, problems(done))
	}
	if known := c.recordNames(t, "alice", v1alpha1.SyncTypeEnvironment); len(known) != 1 {
		t.Errorf("records = %q, want one", known)
	}
	c.waitForStatus(t, "alice", "Synced")
	c.testSyncsDoNotInterleave(t)
}

func (c *fixture) deployments(t *testing.T) int {
	t.Helper()
	list, err := c.dave.Client.AppsV1().Deployments(c.target).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

// testSyncsDoNotInterleave requests two syncs of two revisions at once. The audit log of kube-apiserver must show all writes of
// one before those of the other.
func (c *fixture) testSyncsDoNotInterleave(t *testing.T) {
	t.Helper()
	since := time.Now()
	c.changeAll(t, 2)
	first := c.sync(t, "alice", `{"spec":{"action":"Catalog"}}`)
	mirrortest.Eventually(t, "the first sync writes", func(context.Context) error {
		if len(c.writes(t, since)) == 0 {
			return errors.New("no writes yet")
		}
		return nil
	})
	c.changeAll(t, 3)
	var requests sync.WaitGroup
	records := make([]string, 2)
	for i := range records {
		requests.Go(func() {
			status, err := c.request(t.Context(), c.dave, "environments/alice/sync", `{"spec":{"action":"Catalog"}}`)
			if err != nil && !apierrors.IsConflict(err) && !strings.Contains(err.Error(), "(Conflict)") {
				t.Error(err)
			}
			if err == nil && len(status.SyncStatuses) > 0 {
				records[i] = status.SyncStatuses[0]
			}
		})
	}
	requests.Wait()
	c.waitForState(t, first, v1alpha1.SyncStateCompleted)
	c.waitForStatus(t, "alice", "Synced")
	revision, written := 0, 0
	for _, event := range c.writes(t, since) {
		of := revisionOf(t, &event)
		if of < revision {
			t.Errorf("%s of revision %d follows revision %d", event.RequestURI, of, revision)
		}
		revision, written = max(revision, of), written+1
	}
	if written < many {
		t.Errorf("only %d writes are in the audit log", written)
	}
	c.expectNoOverlap(t)
}

// changeAll changes all workloads in the source, and waits until the catalog offers them.
func (c *fixture) changeAll(t *testing.T, version int) {
	t.Helper()
	manifests, _ := manyDeployments(version)
	c.applyToSource(t, manifests)
	c.waitForWorkloads(t, "alice", func(manifest string) bool { return strings.Contains(manifest, fmt.Sprintf(":%d\"", version)) })
}

// writes returns the audit events of the server's writes of Deployments to the target since a time, without dry runs.
func (c *fixture) writes(t *testing.T, since time.Time) []auditv1.Event {
	t.Helper()
	return audited(t, c.AuditLog(), func(event *auditv1.Event) bool {
		return event.User.Username == people.Server && event.Verb == "patch" && event.ObjectRef != nil && event.ObjectRef.Namespace == c.target &&
			event.ObjectRef.Resource == "deployments" && !strings.Contains(event.RequestURI, "dryRun") &&
			event.ResponseStatus.Code < http.StatusBadRequest && event.RequestReceivedTimestamp.After(since)
	})
}

// expectNoOverlap expects that no two runs of the environment overlapped.
func (c *fixture) expectNoOverlap(t *testing.T) {
	t.Helper()
	records, err := c.records(t.Context(), "alice", v1alpha1.SyncTypeEnvironment)
	if err != nil {
		t.Fatal(err)
	}
	for i, one := range records {
		for _, other := range records[i+1:] {
			a, b := &one.Status, &other.Status
			if a.StartedAt != nil && b.StartedAt != nil && a.StartedAt.Before(b.ResolvedAt) && b.StartedAt.Before(a.ResolvedAt) {
				t.Errorf("%s ran from %v to %v, %s from %v to %v", one.Name, a.StartedAt, a.ResolvedAt, other.Name, b.StartedAt, b.ResolvedAt)
			}
		}
	}
}
