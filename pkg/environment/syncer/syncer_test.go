// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/syncer"
)

// next is the next version of production: web and its settings have changed, worker was deleted, report is new.
func (s *fixture) next() {
	s.Helper()
	s.put(strings.ReplaceAll(settings, "info", "debug"))
	s.catalog.Status.Revision++
	s.offer(strings.ReplaceAll(web, "web:1", "web:2"), report)
}

func TestSync(t *testing.T) {
	s := newFixture(t)
	first := s.sync()
	want := []string{
		"Added ConfigMap queue", "Added ConfigMap settings", "Added Secret database", "Added Deployment web", "Added Deployment worker",
	}
	if diff := cmp.Diff(want, lines(first)); diff != "" {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	s.next()
	var progress []string
	request := s.request()
	request.Progress = func(done, total int) { progress = append(progress, fmt.Sprintf("%d/%d", done, total)) }
	second, err := s.runner().Run(t.Context(), request)
	if err != nil || !second.Complete || second.Revision != 2 || len(second.Failures) > 0 {
		t.Fatalf("%v: %+v", err, second)
	}
	want = []string{
		"Changed ConfigMap settings", "Added CronJob report", "Changed Deployment web", "Removed Deployment worker", "Removed ConfigMap queue",
	}
	if diff := cmp.Diff(want, lines(second)); diff != "" {
		t.Errorf("second (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1/5", "2/5", "3/5", "4/5", "5/5"}, progress); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	if got := s.copied(); got != "2: settings database web report" {
		t.Errorf("copies = %s", got)
	}
	s.checkIndex()
	if copies := s.index.Lookup(index.Object{Type: "ConfigMap", Namespace: environmenttest.Production, Name: "settings"}); len(copies) != 1 {
		t.Errorf("versions of settings = %v", copies)
	}
	if _, there := s.dependencies()["alice.configmap.queue"]; there {
		t.Error("unreferenced ConfigMap queue has a record")
	}
}

func TestAgainItWritesNothing(t *testing.T) {
	s := newFixture(t)
	s.sync()
	s.cluster.TakeRequests()
	before := s.state()
	if result := s.sync(); len(result.Written) > 0 || len(result.Plan.Summaries()) > 0 {
		t.Errorf("written %v", result.Written)
	}
	if writes, dry := written(s.cluster.TakeRequests()); len(writes)+len(dry) > 0 {
		t.Errorf("writes = %q, dry runs = %q", writes, dry)
	}
	if diff := cmp.Diff(before, s.state()); diff != "" {
		t.Errorf("state has changed:\n%s", diff)
	}
}

// TestLargeConfigMap has a ConfigMap whose JSON with escaped characters is larger than a request to the store.
func TestLargeConfigMap(t *testing.T) {
	s := newFixture(t)
	s.put(strings.ReplaceAll(settings, "info", `"`+strings.Repeat("<html&", 160_000)+`"`))
	s.sync()
	before := s.state()
	if result := s.sync(); len(result.Written) > 0 {
		t.Errorf("written %v", lines(result))
	}
	if diff := cmp.Diff(before, s.state()); diff != "" || s.copied() != "1: queue settings database web worker" {
		t.Errorf("copies = %s, state has changed:\n%s", s.copied(), diff)
	}
}

// TestUnchangedRecords checks that records are not updated for the time alone, until it is too old.
func TestUnchangedRecords(t *testing.T) {
	s := newFixture(t)
	s.sync()
	for _, tt := range []struct {
		after   time.Duration
		changed int
	}{{59 * time.Minute, 0}, {time.Minute, 3}, {time.Minute, 0}} {
		before := s.dependencies()
		s.clock.SetTime(s.clock.Now().Add(tt.after))
		s.sync()
		changed := 0
		for name, record := range s.dependencies() {
			if !record.Status.LastDiscoveredAt.Equal(before[name].Status.LastDiscoveredAt) {
				changed++
			}
		}
		if changed != tt.changed {
			t.Errorf("after %v more, %d records have another time, want %d", tt.after, changed, tt.changed)
		}
	}
}

func TestModesThatWriteNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		mode syncer.Mode
		dry  int
	}{"plan": {syncer.ModePlan, 0}, "check": {syncer.ModeDryRun, 7}} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			before := s.state()
			s.api.Process.Start(0, nil)
			request := s.request()
			request.Mode = tt.mode
			result, err := s.runner().Run(t.Context(), request)
			if err != nil || result.Complete || len(result.Plan.Summaries()) != 5 || len(result.Written) > 0 {
				t.Errorf("%v: %+v", err, result)
			}
			if writes, dry := written(s.cluster.TakeRequests()); len(writes) > 0 || len(dry) != tt.dry {
				t.Errorf("writes = %q, dry runs = %q", writes, dry)
			}
			if diff := cmp.Diff(before, s.state()); diff != "" || s.api.Process.Writes() > 0 || s.index.Len() > 0 {
				t.Errorf("%d writes, state has changed:\n%s", s.api.Process.Writes(), diff)
			}
		})
	}
}

// TestDeath has the process die at each write of a run, and another one run again.
func TestDeath(t *testing.T) {
	s := newFixture(t)
	s.sync()
	s.next()
	s.api.Process.Start(0, nil)
	s.sync()
	want, writes := s.state(), s.api.Process.Writes()
	// The writes are five objects, their copies, a changed record and a deleted one.
	if writes < 8 {
		t.Fatalf("only %d writes", writes)
	}
	for last := 1; last <= writes; last++ {
		t.Run(fmt.Sprintf("at write %d of %d", last, writes), func(t *testing.T) {
			s := newFixture(t)
			s.sync()
			s.next()
			s.api.Process.Start(last, nil)
			if result, err := s.runner().Run(t.Context(), s.request()); err == nil || result.Complete {
				t.Fatalf("the process did not die: %+v", result)
			}
			s.api.Process.Start(0, nil)
			s.index = index.New()
			s.sync()
			if diff := cmp.Diff(want, s.state()); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			s.checkIndex()
			if result := s.sync(); len(result.Written) > 0 {
				t.Errorf("next run has written %v", result.Written)
			}
			if got := s.appliedAt(1, "web"); !strings.Contains(got, "web:1") {
				t.Errorf("copies at revision 1 = %s", got)
			}
		})
	}
}

func TestOthersWriteMeanwhile(t *testing.T) {
	for name, tt := range map[string]struct {
		// when is when and how often another client changes settings.
		when  string
		times int
		fails string
	}{
		"before the dry run": {when: "dry PATCH shop-alice/configmaps/settings", times: 1},
		"after it":           {when: "PATCH shop-alice/configmaps/settings", times: 2},
		"all the time": {
			when: "PATCH shop-alice/configmaps/settings", times: 100,
			fails: "sync environment teams/alice: other clients keep changing the objects of this sync: " +
				"ConfigMap settings has been changed meanwhile",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.sync()
			s.next()
			s.cluster.Answer(func(request string) *metav1.Status {
				if request == tt.when && tt.times > 0 {
					tt.times--
					changed := s.cluster.Live("configmaps", environmenttest.Target, "settings")
					changed.Object["data"].(map[string]any)[fmt.Sprint("mine", tt.times)] = "yes"
					s.cluster.Put(changed)
				}
				return nil
			})
			result, err := s.runner().Run(t.Context(), s.request())
			if tt.fails != "" {
				if err == nil || err.Error() != tt.fails || result.Complete {
					t.Errorf("%v: %+v", err, result)
				}
				return
			}
			if err != nil || !result.Complete || len(result.Written) != 5 {
				t.Errorf("%v: %v", err, lines(result))
			}
			data := s.cluster.Live("configmaps", environmenttest.Target, "settings").Object["data"].(map[string]any)
			if data["mine0"] != "yes" || data["level"] != "debug" {
				t.Errorf("settings = %v", data)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	s := newFixture(t)
	before := s.state()
	s.cluster.Answer(func(request string) *metav1.Status {
		if request == "dry PATCH shop-alice/deployments/web" {
			return environmenttest.Status(http.StatusForbidden, metav1.StatusReasonForbidden, "no "+strings.Repeat("ü", 400))
		}
		return nil
	})
	result, err := s.runner().Run(t.Context(), s.request())
	if err != nil || result.Complete || len(result.Failures) != 1 || len(result.Written) > 0 {
		t.Fatalf("%v: %+v", err, result)
	}
	failure := result.Failures[0]
	if failure.Reason != v1alpha1.ReasonRefused || failure.Type != "Deployment" || failure.Name != "web" ||
		!strings.HasPrefix(failure.Message, "Deployment 'web' of shop-alice: no üü") || !strings.HasSuffix(failure.Message, "ü...") ||
		len(failure.Message) > 512 || !utf8.ValidString(failure.Message) {
		t.Errorf("%+v", failure)
	}
	if diff := cmp.Diff(before, s.state()); diff != "" {
		t.Errorf("refused sync has written objects:\n%s", diff)
	}
}

func TestMissingInTheSource(t *testing.T) {
	s := newFixture(t)
	s.sync()
	s.next()
	s.cluster.Drop("configmaps", environmenttest.Production, "settings")
	result := s.sync()
	want := []string{"Failed to sync ConfigMap 'settings' from production - does not exist"}
	var got []string
	for _, failure := range result.Failures {
		got = append(got, failure.Message)
	}
	if !slices.Equal(got, want) {
		t.Errorf("failures %q", got)
	}
	if s.cluster.Live("configmaps", environmenttest.Target, "settings") == nil || !strings.Contains(s.copied(), "settings") {
		t.Errorf("previous copy was removed: %s", s.copied())
	}
	if !s.dependencies()["alice.configmap.settings"].Status.Missing {
		t.Error("record is not marked as missing")
	}
}

// TestRevisionBroughtInPart has the source lack an object when a revision is applied. The next run with the same revision detects this
// again, and applies the object once it exists.
func TestRevisionBroughtInPart(t *testing.T) {
	s := newFixture(t)
	s.cluster.Drop("configmaps", environmenttest.Production, "settings")
	request := s.request()
	request.Revision = 1
	for attempt := range 2 {
		result, err := s.runner().Run(t.Context(), request)
		if err != nil || len(result.Failures) != 1 || result.Failures[0].Name != "settings" {
			t.Errorf("attempt %d: %v: failures %v", attempt+1, err, result.Failures)
		}
	}
	s.put(settings)
	result, err := s.runner().Run(t.Context(), request)
	if err != nil || len(result.Failures) > 0 || s.cluster.Live("configmaps", environmenttest.Target, "settings") == nil {
		t.Errorf("%v: failures %v, written %v", err, result.Failures, lines(result))
	}
}

// TestTrackingMarks has the tracking label of a tool in the SyncPolicy.
func TestTrackingMarks(t *testing.T) {
	s := newFixture(t)
	s.put("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, labels: {example.com/owner: tool, " +
		"helm.toolkit.fluxcd.io/name: shop}}}")
	labels := func() map[string]string {
		s.sync()
		return s.cluster.Live("configmaps", environmenttest.Target, "settings").GetLabels()
	}
	if got := labels(); got["example.com/owner"] != "tool" || got["helm.toolkit.fluxcd.io/name"] != "" {
		t.Errorf("without a SyncPolicy: %v", got)
	}
	policy := &v1alpha1.SyncPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1alpha1.SyncPolicySpec{TrackingMarks: []string{"example.com/*"}},
	}
	s.api.Put(policy)
	if got := labels(); got["example.com/owner"] != "" || got[v1alpha1.LabelEnvironment] == "" {
		t.Errorf("with a SyncPolicy: %v", got)
	}
}

func TestSyncWithoutARequester(t *testing.T) {
	s := newFixture(t)
	request := s.request()
	request.Requester = nil
	if result, err := s.runner().Run(t.Context(), request); err == nil || len(result.Written) > 0 {
		t.Errorf("%v: written %v", err, lines(result))
	}
}

// TestReplacedCatalog checks that nothing is written from another catalog than the one that the environment follows, and that it can be
// previewed.
func TestReplacedCatalog(t *testing.T) {
	s := newFixture(t)
	request := s.request()
	request.Catalog = "33333333-3333-3333-3333-333333333333"
	if result, err := s.runner().Run(t.Context(), request); !errors.Is(err, syncer.ErrCatalogReplaced) || len(result.Written) > 0 {
		t.Errorf("%v: written %v", err, lines(result))
	}
	for _, mode := range []syncer.Mode{syncer.ModePlan, syncer.ModeDryRun} {
		request.Mode = mode
		if _, err := s.runner().Run(t.Context(), request); err != nil {
			t.Errorf("mode %v: %v", mode, err)
		}
	}
}

func TestTargetThatIsNotThere(t *testing.T) {
	s := newFixture(t)
	s.cluster.Drop("namespaces", "", environmenttest.Target)
	result, err := s.runner().Run(t.Context(), s.request())
	if err != nil || len(result.Failures) != 1 || result.Failures[0].Message != "Namespace 'shop-alice': does not exist" {
		t.Errorf("%v: %+v", err, result)
	}
	s.environment.Spec.CreateNamespace = true
	s.rights.Lose(`user "jane": create namespaces `)
	result, err = s.runner().Run(t.Context(), s.request())
	const lost = `Namespace 'shop-alice': does not exist, and user "jane" may not create namespaces in the whole cluster: grant that again`
	if err != nil || len(result.Failures) != 1 || result.Failures[0].Message != lost || len(result.Written) > 0 {
		t.Errorf("%v: %+v", err, result)
	}
	s.rights.Fail(errors.New("no answer"))
	result, err = s.runner().Run(t.Context(), s.request())
	if err == nil || !strings.Contains(err.Error(), "no answer") || len(result.Written) > 0 {
		t.Errorf("%v: %+v", err, result)
	}
	s.rights.Lose()
	// No controller creates the account of Pods, and the sync does not wait for it for long.
	s.cluster.Put(environmenttest.Object(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: shop-alice}}"))
	if result := s.sync(); len(result.Written) != 5 {
		t.Errorf("%+v", result)
	}
	labels := s.cluster.Live("namespaces", "", environmenttest.Target).GetLabels()
	if labels[v1alpha1.LabelEnvironmentUID] != string(s.environment.UID) {
		t.Errorf("labels of the namespace = %v", labels)
	}
}

// TestRollback rolls an environment back after production has changed and deleted objects of the revision.
func TestRollback(t *testing.T) {
	s := newFixture(t)
	s.sync()
	before := s.state()
	s.next()
	s.sync()
	s.cluster.Drop("configmaps", environmenttest.Production, "settings")
	s.cluster.Drop("configmaps", environmenttest.Production, "queue")
	s.put(strings.ReplaceAll(database, "aHVudGVyMg==", "aHVudGVyMw=="))
	request := s.request()
	request.Revision = 1
	result, err := s.runner().Run(t.Context(), request)
	if err != nil || !result.Complete || result.Revision != 1 || len(result.Failures) > 0 {
		t.Fatalf("%v: %+v", err, result)
	}
	after := s.state()
	for name := range before {
		if strings.HasPrefix(name, "record ") { // Records describe the current source.
			continue
		}
		if diff := cmp.Diff(before[name], after[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d objects, want %d", len(after), len(before))
	}
	s.checkIndex()
	if again, err := s.runner().Run(t.Context(), request); err != nil || len(again.Written) > 0 {
		t.Errorf("second rollback: %v: written %v", err, lines(again))
	}
}

// TestTargetThatIsRebuilt deletes the target while the source lacks objects that workloads refer to.
func TestTargetThatIsRebuilt(t *testing.T) {
	s := newFixture(t)
	s.sync()
	for _, name := range s.cluster.Names(environmenttest.Target) {
		resource, name, _ := strings.Cut(name, "/")
		s.cluster.Drop(resource, environmenttest.Target, name)
	}
	s.cluster.Drop("configmaps", environmenttest.Production, "settings")
	result := s.sync()
	if len(result.Failures) != 1 || result.Failures[0].Message != "Failed to sync ConfigMap 'settings' from production - does not exist" {
		t.Errorf("failures %v", result.Failures)
	}
	if live := s.cluster.Live("configmaps", environmenttest.Target, "settings"); live == nil || len(result.Written) != 5 {
		t.Errorf("written %v", lines(result))
	}
}

func TestWhatIsKept(t *testing.T) {
	t.Run("copies of a revision are kept by a sync of a part", func(t *testing.T) {
		s := newFixture(t)
		s.sync()
		s.next()
		request := s.request()
		request.Only = []v1alpha1.WorkloadReference{{Kind: v1alpha1.WorkloadDeployment, Name: "web"}}
		if result, err := s.runner().Run(t.Context(), request); err != nil || !result.Complete {
			t.Fatalf("%v: %+v", err, result)
		}
		if got := s.copied(); !strings.HasPrefix(got, "0: ") || !strings.Contains(got, "worker") {
			t.Errorf("copies = %s", got)
		}
		if got := s.appliedAt(1, "web"); !strings.Contains(got, "web:1") {
			t.Errorf("copies at revision 1 = %s", got)
		}
	})
	t.Run("copies of a revision are kept by a refresh", func(t *testing.T) {
		s := newFixture(t)
		s.sync()
		s.next()
		request := s.request()
		request.Action = v1alpha1.SyncActionCluster
		result, err := s.runner().Run(t.Context(), request)
		if err != nil || !result.Complete || !slices.Equal(lines(result), []string{"Changed ConfigMap settings"}) {
			t.Fatalf("%v: %+v", err, result)
		}
		if got := s.copied(); got != "1: queue settings database web worker" {
			t.Errorf("copies = %s", got)
		}
		if len(s.dependencies()) != 3 {
			t.Errorf("records = %v", s.dependencies())
		}
	})
	t.Run("copies of objects that others have deleted are not kept", func(t *testing.T) {
		s := newFixture(t)
		s.sync()
		s.next()
		s.cluster.Drop("deployments", environmenttest.Target, "worker")
		s.sync()
		if got := s.copied(); strings.Contains(got, "worker") || !strings.HasPrefix(got, "2: ") {
			t.Errorf("copies = %s", got)
		}
	})
}
