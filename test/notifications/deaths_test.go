// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notifications

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/pkg/syncstatus"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// rounds is the number of rounds of changes. The last one is after another start.
const rounds = 3

// TestKilledAtEachStep kills the server at every failpoint of notifications and restarts it. Each change, prompt and completed sync must be
// notified exactly once, except in messages with the same ID.
func TestKilledAtEachStep(t *testing.T) {
	t.Parallel()
	root, err := programs.ModuleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	built, err := programs.ProductWithFailpoints(t.Context(), root, "cmd/slipstream")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program, armed := filepath.Join(dir, "slipstream"), filepath.Join(dir, "armed")
	// A starting server reads its failpoint from a file and empties the file for the next start.
	writeFile(t, program, fmt.Sprintf("#!/bin/sh\nexport SLIPSTREAM_FAILPOINTS=\"$(cat %[1]s)\"\n: > %[1]s\nexec %[2]s \"$@\"\n", armed, built))
	writeFile(t, armed, "")
	s := newTestCluster(t, devcluster.Options{ServerProgram: program})
	// The messages of a round are about Changes, a prompt and a completed sync, so that the server dies at each of them.
	for i, step := range []string{"notification-stored=kill@5", "notification-sending=kill@2", "notification-delivered=kill@3", "notification-settled=kill@4"} {
		t.Run(step, func(t *testing.T) {
			c := &mortal{fixture: s.newFixture(t, fmt.Sprintf("step%d", i)), inbox: newInbox(t)}
			m := s.NewMirror(t, c.team, "granularity: PerChange")
			m.Watch(t, "config", "configmaps")
			m.Settled(t)
			s.sink(t, c.team, "chat", c.inbox.sink(), prompt, "events: [Change, Prompted, Completed]")
			c.environment(t, "alice", c.target)
			c.fixture.sync(t, "alice")
			t.Cleanup(func() { s.DeleteIfExist(t, c.team, "sink/chat") }) // It must not reach the failpoints of the next step.
			writeFile(t, armed, step)
			s.restart(t, syscall.SIGTERM)
			for n := range rounds - 1 {
				c.change(t, n)
			}
			if c.deaths != 1 {
				t.Errorf("server died %d times, want 1", c.deaths)
			}
			s.restart(t, syscall.SIGTERM) // It would notify again of what it had not noted.
			c.change(t, rounds-1)
			c.expectOnce(t)
		})
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
}

// mortal is a fixture whose server dies.
type mortal struct {
	*fixture
	inbox  inbox
	deaths int
	// down is set from a death until the server has started again, which may take several attempts.
	down bool
	// prompts are the notifications of prompts so far.
	prompts int
}

// revive starts the server again if it has died.
func (c *mortal) revive(ctx context.Context) error {
	if c.isServing(ctx) {
		c.down = false
		return nil
	}
	if !c.down {
		c.deaths++
	}
	c.down = true
	return c.StartServer(ctx)
}

// eventually waits until a check succeeds, and restarts the server when it has died.
func (c *mortal) eventually(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	mirrortest.Eventually(t, what, func(ctx context.Context) error {
		if err := c.revive(ctx); err != nil {
			return err
		}
		return check(ctx)
	})
}

// change creates two ConfigMaps, changes the source of the environment, and syncs it. It waits for the notification of each.
func (c *mortal) change(t *testing.T, number int) {
	t.Helper()
	for i := range 2 {
		c.ConfigMap(t, c.team, fmt.Sprintf("c%d-%d", number, i), "a: '1'")
	}
	for i := range 2 {
		name := fmt.Sprintf("c%d-%d", number, i)
		c.eventually(t, "the change of "+name+" is notified", func(context.Context) error { return c.has("Change ConfigMap "+name, 1) })
	}
	c.image(t, fmt.Sprintf("shop/web:next-%d", number))
	c.prompts++
	c.eventually(t, "the prompt is notified", func(context.Context) error { return c.has("Prompted Environment alice", c.prompts) })
	c.eventually(t, "alice is synced", func(ctx context.Context) error {
		e, err := c.jane.Own.ConfigbutlerV1alpha1().Environments(c.team).Get(ctx, "alice", metav1.GetOptions{})
		if err != nil || e.Status.AppliedRevision == e.Status.LatestRevision {
			return err
		}
		if _, err = c.jane.Try.Post(ctx, "/apis/configbutler.ai/v1alpha1/namespaces/"+c.team+"/environments/alice/sync", "{}"); err == nil {
			err = fmt.Errorf("revision %d of %d is applied", e.Status.AppliedRevision, e.Status.LatestRevision)
		}
		return err
	})
	// A sync is requested again until it is completed, so another one can follow it.
	c.eventually(t, "completed syncs are notified", func(ctx context.Context) error {
		e, err := c.jane.Own.ConfigbutlerV1alpha1().Environments(c.team).Get(ctx, "alice", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if requested := len(e.Status.PendingRequests); requested > 0 {
			return fmt.Errorf("%d requests are pending", requested)
		}
		completed, err := c.completed(ctx)
		if err == nil {
			err = c.has("Completed Environment alice", completed)
		}
		return err
	})
}

// has returns an error unless at least a number of notifications were received.
func (c *mortal) has(line string, want int) error {
	got := 0
	for _, each := range lines(c.inbox.notifications()) {
		if each == line {
			got++
		}
	}
	if got < want {
		return fmt.Errorf("received %q", lines(c.inbox.notifications()))
	}
	return nil
}

// completed returns the number of completed syncs, and an error while there are others.
func (c *mortal) completed(ctx context.Context) (count int, err error) {
	records, err := c.jane.Own.ConfigbutlerV1alpha1().SyncStatuses(c.team).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	for _, record := range records.Items {
		if record.Spec.Subject.Kind != v1alpha1.SubjectEnvironment {
			continue
		}
		if !syncstatus.Settled(&record) {
			return 0, fmt.Errorf("SyncStatus %s is %s", record.Name, record.Status.State)
		}
		if record.Status.State == v1alpha1.SyncStateCompleted {
			count++
		}
	}
	return count, nil
}

// expectOnce checks that each notification was received in one message only, and that each is expected.
func (c *mortal) expectOnce(t *testing.T) {
	t.Helper()
	c.status(t, c.team, "chat", "is idle", func(status *v1alpha1.NotificationSinkStatus) bool { return status.Pending == 0 })
	in := map[string]string{}
	requests := map[string]int{}
	for _, letter := range c.inbox.letters() {
		requests[letter.ID]++
		for _, n := range letter.Notifications {
			if other, found := in[n.ID]; found && other != letter.ID {
				t.Errorf("%s is in the messages %s and %s", lines([]message.Notification{n}), other, letter.ID)
			}
			in[n.ID] = letter.ID
		}
	}
	want := []string{}
	for number := range rounds {
		for i := range 2 {
			want = append(want, fmt.Sprintf("Change ConfigMap c%d-%d", number, i))
		}
	}
	for range c.prompts {
		want = append(want, "Prompted Environment alice")
	}
	completed, err := c.completed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range completed {
		want = append(want, "Completed Environment alice")
	}
	c.inbox.expect(t, want...)
	t.Logf("%d messages, in %d requests", len(requests), len(c.inbox.letters()))
}
