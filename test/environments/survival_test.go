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
	"github.com/configbutler/slipstream/test/mirrortest"
	"github.com/configbutler/slipstream/test/people"
)

// many are the workloads of a large catalog, kills how often the server is killed while it syncs them.
const (
	many  = 100
	kills = 3
)

// rebuilt has somebody delete the target.
func (s *stage) rebuilt(t *testing.T) {
	c := s.newScene(t, "rebuilt", shop, workloads("api", "worker"))
	c.environment(t, "alice", "createNamespace: false")
	c.synced(t, "alice", all)
	before := s.in(t, c.target).names()
	c.Run(t, "delete", "namespace", c.target, "--wait=false")
	mirrortest.Eventually(t, "the namespace goes", func(ctx context.Context) error {
		_, err := s.admin.Client.CoreV1().Namespaces().Get(ctx, c.target, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
	c.says(t, "alice", "Stalled: ")
	c.becomes(t, "alice", "says what is not there", func(e *v1alpha1.Environment) error {
		for _, condition := range e.Status.Conditions {
			if condition.Type == v1alpha1.ConditionStalled && condition.Reason == v1alpha1.ReasonTargetNotFound && strings.Contains(condition.Message, c.target) {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", e.Status.Conditions)
	})
	c.newTarget(t, c.target)
	c.becomes(t, "alice", "goes on", func(e *v1alpha1.Environment) error {
		for _, condition := range e.Status.Conditions {
			if condition.Type == v1alpha1.ConditionStalled && condition.Status == metav1.ConditionTrue {
				return errors.New(condition.Message)
			}
		}
		return nil
	})
	c.synced(t, "alice", all)
	if after := s.in(t, c.target).names(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("there are %q, want %q", after, before)
	}
}

// crowd are the Deployments of a large catalog, in a version.
func crowd(version int) (manifests string, names []string) {
	var out strings.Builder
	for i := range many {
		name := fmt.Sprintf("w%03d", i)
		out.WriteString(strings.NewReplacer("worker:1", name+":"+strconv.Itoa(version), "worker", name, "name: jobs", "name: settings").Replace(worker))
		names = append(names, name)
	}
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {level: info}}\n---\n" + out.String(), names
}

// interrupted kills the server in the middle of a large sync, at random, and looks what becomes of it.
func (s *stage) interrupted(t *testing.T) {
	s.govern(t, "retry: {maxAttempts: 5, backoff: 1s, maxBackoff: 1s}") // A run that the server dies in is an attempt.
	defer s.govern(t)
	manifests, names := crowd(1)
	c := s.newScene(t, "interrupted", manifests, workloads(names...))
	c.environment(t, "alice")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	record := c.sync(t, "alice", all)
	for range kills {
		there := c.deployments(t)
		if there == many {
			break
		}
		enough := there + 1 + random.IntN((many-there)/2+1)
		mirrortest.Eventually(t, "the sync goes on", func(context.Context) error {
			if there := c.deployments(t); there < enough {
				return fmt.Errorf("%d of %d: %s", there, enough, c.tell(t.Context()))
			}
			return nil
		})
		s.restart(t, syscall.SIGKILL)
	}
	done := c.rests(t, record, v1alpha1.SyncStateCompleted)
	if there := c.deployments(t); there != many || problems(done) != "" || done.Status.Actor != "dave" {
		t.Errorf("%d of %d are there, by %q: %s", there, many, done.Status.Actor, problems(done))
	}
	if known := c.known(t, "alice", v1alpha1.SyncTypeEnvironment); len(known) != 1 {
		t.Errorf("it has been recorded as %q", known)
	}
	c.says(t, "alice", "Synced")
	c.interleaved(t)
}

func (c *scene) deployments(t *testing.T) int {
	t.Helper()
	list, err := c.dave.Client.AppsV1().Deployments(c.target).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

// interleaved asks for two syncs at once, of two revisions, and expects the audit log of kube-apiserver to show the writes of
// the one after all of the other.
func (c *scene) interleaved(t *testing.T) {
	t.Helper()
	since := time.Now()
	c.changeAll(t, 2)
	first := c.sync(t, "alice", `{"spec":{"action":"Catalog"}}`)
	mirrortest.Eventually(t, "the first sync writes", func(context.Context) error {
		if len(c.writes(t, since)) == 0 {
			return errors.New("nothing yet")
		}
		return nil
	})
	c.changeAll(t, 3)
	var asked sync.WaitGroup
	records := make([]string, 2)
	for i := range records {
		asked.Go(func() {
			answer, err := c.ask(t.Context(), c.dave, "environments/alice/sync", `{"spec":{"action":"Catalog"}}`)
			if err != nil && !apierrors.IsConflict(err) && !strings.Contains(err.Error(), "(Conflict)") {
				t.Error(err)
			}
			if err == nil && len(answer.SyncStatuses) > 0 {
				records[i] = answer.SyncStatuses[0]
			}
		})
	}
	asked.Wait()
	c.rests(t, first, v1alpha1.SyncStateCompleted)
	c.says(t, "alice", "Synced")
	revision, written := 0, 0
	for _, event := range c.writes(t, since) {
		of := revisionOf(t, &event)
		if of < revision {
			t.Errorf("%s of revision %d comes after revision %d", event.RequestURI, of, revision)
		}
		revision, written = max(revision, of), written+1
	}
	if written < many {
		t.Errorf("only %d writes are in the log", written)
	}
	c.apart(t)
}

// changeAll has production change all workloads, and waits until that is offered.
func (c *scene) changeAll(t *testing.T, version int) {
	t.Helper()
	manifests, _ := crowd(version)
	c.produce(t, manifests)
	mirrortest.Eventually(t, "the catalog offers them", func(ctx context.Context) error {
		list, err := c.eve.Own.ConfigbutlerV1alpha1().CatalogWorkloads(c.team).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, workload := range list.Items {
			if !strings.Contains(string(workload.Status.Manifest.Raw), fmt.Sprintf(":%d\"", version)) {
				return fmt.Errorf("%s is as it was", workload.Name)
			}
		}
		return nil
	})
	catalog, err := c.eve.Own.ConfigbutlerV1alpha1().AppCatalogs(c.team).Get(t.Context(), "shop", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.offered(t, "alice", catalog.Status.Revision)
}

// writes are the Deployments that the server has written to the target since a time, dry runs left out.
func (c *scene) writes(t *testing.T, since time.Time) []auditv1.Event {
	t.Helper()
	return audited(t, c.AuditLog(), func(event *auditv1.Event) bool {
		return event.User.Username == people.Server && event.Verb == "patch" && event.ObjectRef != nil && event.ObjectRef.Namespace == c.target &&
			event.ObjectRef.Resource == "deployments" && !strings.Contains(event.RequestURI, "dryRun") &&
			event.ResponseStatus.Code < http.StatusBadRequest && event.RequestReceivedTimestamp.After(since)
	})
}

// apart expects no two runs of the environment to have gone on at once.
func (c *scene) apart(t *testing.T) {
	t.Helper()
	records, err := c.records(t.Context(), "alice", v1alpha1.SyncTypeEnvironment)
	if err != nil {
		t.Fatal(err)
	}
	for i, one := range records {
		for _, other := range records[i+1:] {
			a, b := &one.Status, &other.Status
			if a.StartedAt != nil && b.StartedAt != nil && a.StartedAt.Before(b.ResolvedAt) && b.StartedAt.Before(a.ResolvedAt) {
				t.Errorf("%s went on from %v to %v, %s from %v to %v", one.Name, a.StartedAt, a.ResolvedAt, other.Name, b.StartedAt, b.ResolvedAt)
			}
		}
	}
}
