// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// testLeaderEnds ends the leader in the middle of changes: it is killed, stopped, and stands still for longer than its Lease lasts. Each time,
// everything must be worked on once, with the right authors.
func (s *testCluster) testLeaderEnds(t *testing.T) {
	l := s.newLoad(t)
	for round, end := range []func(*testing.T, int) (resume func()){
		s.signal(syscall.SIGKILL), s.signal(syscall.SIGTERM), s.suspend,
	} {
		before, leading := s.OtherLeader(t, s.admin.Client, ""), s.LeadingReplica(t, replicas)
		half, all := l.start(t, round)
		<-half
		began := time.Now()
		resume := end(t, leading)
		s.OtherLeader(t, s.admin.Client, before)
		led := time.Since(began)
		<-all
		l.Equal(t, s.admin.Client)
		t.Logf("round %d: another replica leads after %s, all changes are pushed after %s", round, led.Round(10*time.Millisecond),
			time.Since(began).Round(10*time.Millisecond))
		resume()
		s.restart(t)
		l.Settled(t)
		l.Equal(t, s.admin.Client)
	}
	l.Intact(t)
	l.ChangesAgree(t)
	l.checkCommits(t)
	l.checkCatalog(t)
	l.checkEnvironment(t)
	l.checkPipeline(t)
	l.checkNotifications(t)
}

// signal returns a function that ends the leader with a signal.
func (s *testCluster) signal(signal syscall.Signal) func(*testing.T, int) func() {
	return func(t *testing.T, leading int) func() {
		t.Helper()
		ended := make(chan error, 1)
		go func() { ended <- s.StopServer(t.Context(), signal, leading) }()
		return func() {
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		}
	}
}

// suspend has the leader stand still until the returned function is called.
func (s *testCluster) suspend(t *testing.T, leading int) (resume func()) {
	t.Helper()
	if err := s.SignalServer(syscall.SIGSTOP, leading); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := s.SignalServer(syscall.SIGCONT, leading); err != nil {
			t.Fatal(err)
		}
		mirrortest.Eventually(t, "the resumed replica leads no longer", func(ctx context.Context) error {
			metrics, err := s.ReadReplica(ctx, leading, "/metrics")
			if err == nil && !strings.Contains(metrics, "leader_election_master_status{name=\"slipstream\"} 0") {
				err = errors.New("it still leads")
			}
			return err
		})
	}
}

// checkCommits expects one commit at most for each resourceVersion, by its author.
func (l *load) checkCommits(t *testing.T) {
	t.Helper()
	commits, err := l.History(t.Context(), "v1/configmaps")
	if err != nil {
		t.Fatal(err)
	}
	committed, named := map[string]bool{}, 0
	for _, c := range commits {
		author, logged := l.authors.Load(c.ResourceVersion)
		if !logged {
			continue // of a comparison or a deletion
		}
		if committed[c.ResourceVersion] {
			t.Errorf("duplicate: %s", c)
		}
		committed[c.ResourceVersion] = true
		switch {
		case c.Author == author:
			named++
		case c.Signal != "unknown" && c.Signal != "managed-fields":
			t.Errorf("wrong author, want %s: %s", author, c)
		}
	}
	t.Logf("%d commits; %d of %d changes have one of their own, %d with their author", len(commits), len(committed), l.made.Load(), named)
}

// records returns the records of the catalog or the environment, by the revision.
func (l *load) records(t *testing.T, of v1alpha1.SyncType) map[int64][]v1alpha1.SyncStatus {
	t.Helper()
	list, err := l.admin.Own.ConfigbutlerV1alpha1().SyncStatuses(l.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[int64][]v1alpha1.SyncStatus{}
	for _, record := range list.Items {
		if record.Spec.Type == of {
			found[record.Status.Revision] = append(found[record.Status.Revision], record)
		}
	}
	return found
}

// checkCatalog waits until the catalog offers the source, and expects one record for each revision, by users who changed the source.
func (l *load) checkCatalog(t *testing.T) {
	t.Helper()
	mirrortest.Eventually(t, "the catalog offers the source", func(ctx context.Context) error {
		want, err := l.images(ctx, l.source)
		if err != nil {
			return err
		}
		offered, err := l.admin.Own.ConfigbutlerV1alpha1().CatalogWorkloads(l.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, each := range offered.Items {
			if manifest := string(each.Status.Manifest.Raw); !strings.Contains(manifest, fmt.Sprintf("%q", want[each.Status.Name])) {
				return fmt.Errorf("%s is offered as %s, want image %s", each.Status.Name, manifest, want[each.Status.Name])
			}
		}
		return nil
	})
	catalog, err := l.admin.Own.ConfigbutlerV1alpha1().AppCatalogs(l.Namespace).Get(t.Context(), "shop", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	users := []string{""}
	for _, user := range l.users {
		users = append(users, user.Name)
	}
	records := l.records(t, v1alpha1.SyncTypeCatalog)
	for revision := range catalog.Status.Revision {
		if of := records[revision+1]; len(of) != 1 {
			t.Errorf("%d records of revision %d, want 1", len(of), revision+1)
		}
	}
	for _, of := range records {
		for _, author := range of[0].Status.ChangedBy {
			if !slices.Contains(users, author.Username) {
				t.Errorf("%s is by %s", of[0].Name, author.Username)
			}
		}
	}
	t.Logf("the catalog has revision %d", catalog.Status.Revision)
}

// images returns the image of each Deployment of a namespace.
func (l *load) images(ctx context.Context, namespace string) (map[string]string, error) {
	list, err := l.admin.Client.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	images := map[string]string{}
	for _, each := range list.Items {
		images[each.Name] = each.Spec.Template.Spec.Containers[0].Image
	}
	return images, nil
}

// checkEnvironment waits until the target equals the source, and expects one completed sync at most for each revision.
func (l *load) checkEnvironment(t *testing.T) {
	t.Helper()
	mirrortest.Eventually(t, "the environment has the source", func(ctx context.Context) error {
		want, err := l.images(ctx, l.source)
		if err != nil {
			return err
		}
		got, err := l.images(ctx, l.target)
		if err == nil && !maps.Equal(got, want) {
			err = fmt.Errorf("target has %v, want %v", got, want)
		}
		return err
	})
	l.HaveCondition(t, l.Namespace, v1alpha1.ConditionCatalogUpToDate, "environment/alice")
	records := l.records(t, v1alpha1.SyncTypeEnvironment)
	for revision, of := range records {
		completed := 0
		for _, record := range of {
			if record.Status.State == v1alpha1.SyncStateCompleted {
				completed++
			}
		}
		if completed > 1 {
			t.Errorf("revision %d was synced %d times", revision, completed)
		}
	}
	t.Logf("%d revisions were synced", len(records))
}

// checkPipeline waits until the receiver has exactly the ConfigMaps of the namespace.
func (l *load) checkPipeline(t *testing.T) {
	t.Helper()
	mirrortest.Eventually(t, "the receiver has the ConfigMaps", func(ctx context.Context) error {
		list, err := l.admin.Client.CoreV1().ConfigMaps(l.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		want := []string{}
		for _, each := range list.Items {
			want = append(want, l.Namespace+"/v1/ConfigMap/"+each.Name)
		}
		got := slices.DeleteFunc(l.index.Known(), func(id string) bool { return !strings.HasPrefix(id, l.Namespace+"/") })
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			err = fmt.Errorf("receiver has %d objects, want %d", len(got), len(want))
		}
		return err
	})
	t.Logf("the receiver has had %d calls", len(l.index.Calls()))
}

// happened returns the number of Changes and completed syncs.
func (l *load) happened(t *testing.T) int {
	t.Helper()
	changes, err := l.admin.Own.ConfigbutlerV1alpha1().Changes(l.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	count := len(changes.Items)
	for _, of := range l.records(t, v1alpha1.SyncTypeEnvironment) {
		for _, record := range of {
			if record.Status.State == v1alpha1.SyncStateCompleted {
				count++
			}
		}
	}
	return count
}

// checkNotifications waits until each Change and each completed sync is notified, and expects each in one message only. A message may have
// been sent again with the same ID.
func (l *load) checkNotifications(t *testing.T) {
	t.Helper()
	want, messages := l.happened(t)-l.before, map[string]int{}
	mirrortest.Eventually(t, "everything is notified", func(context.Context) error {
		in, sum := map[string]string{}, 0
		for _, request := range l.inbox.Requests() {
			id := request.Header.Get("Ce-Id")
			one := struct {
				Count         int
				Notifications []message.Notification
			}{}
			if request.Header.Get("Ce-Type") == "ai.configbutler.digest" {
				if err := json.Unmarshal(request.Body, &one); err != nil {
					return err
				}
			} else {
				one.Count, one.Notifications = 1, make([]message.Notification, 1)
				if err := json.Unmarshal(request.Body, &one.Notifications[0]); err != nil {
					return err
				}
			}
			if messages[id]++; in[id] == "" {
				in[id], sum = id, sum+one.Count
			}
			for _, n := range one.Notifications {
				if other, found := in[n.ID]; found && other != id {
					t.Errorf("%s is in the messages %s and %s", n.Headline, other, id)
				}
				in[n.ID] = id
			}
		}
		if sum != want {
			return fmt.Errorf("%d notifications, want %d", sum, want)
		}
		return nil
	})
	t.Logf("%d notifications in %d messages", want, len(messages))
}
