// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	objectreference "k8s.io/client-go/tools/reference"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned/scheme"
	"github.com/configbutler/slipstream/pkg/syncstatus"
)

// describe returns the namespace and name of a catalog, and all of the reference to another object.
func describe(object runtime.Object) string {
	about, err := objectreference.GetReference(scheme.Scheme, object)
	if err != nil {
		return err.Error()
	}
	if about.Kind != "AppCatalog" || string(about.UID) != "uid-of-"+about.Name {
		return fmt.Sprintf("%+v", about)
	}
	return about.Namespace + "/" + about.Name
}

// expectEvents waits for the Events, and then for a window in which no others must be published.
func (s *fixture) expectEvents(want ...string) {
	s.Helper()
	s.eventually("the Events", func() error {
		if got := s.events.Lines(); len(got) < len(want) {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
	s.stepWindow()
	if got := s.events.Lines(); !slices.Equal(got, want) {
		s.Fatalf("Events:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

const firstEvent = "teams/shop Normal Changed: Revision 1: 2 workloads changed by eve"

func TestEventsReportChanges(t *testing.T) {
	s := runningFixture(t)
	s.put("api", "shop/api:2")
	s.waitForRevision("shop", 2)
	s.remove("worker")
	s.waitForRevision("shop", 3)
	s.stop()
	s.start(0)
	s.waitForWatches()
	s.stepWindow()
	s.put("worker", "shop/worker:2")
	s.waitForRevision("shop", 4)
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.PreviewOnly = true })
	s.waitForRevision("shop", 4)
	s.put("api", "shop/api:3")
	s.expectEvents(firstEvent,
		"teams/shop Normal Changed: Revision 2: 1 workload changed",
		"teams/shop Warning DeletedInSource: Not in the source any more, and kept until an editor takes them out: Deployment worker",
		"teams/shop Normal Changed: Revision 3: 1 workload changed",
		"teams/shop Normal Changed: Revision 4: 1 workload changed",
		"teams/shop Normal Previewed: Preview: 1 workload changed")
}

func TestEventsReportFailuresOnce(t *testing.T) {
	s := runningFixture(t)
	s.put("api", "shop/api:1", with([]any{map[string]any{
		"name": "main", "image": "shop/api:1", "env": []any{map[string]any{"name": "TOKEN", "value": "hunter2"}},
	}}, "spec", "template", "spec", "containers"))
	s.waitForRevision("shop", 2)
	s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.Patches = []v1alpha1.Patch{failingPatch} })
	s.waitForState(v1alpha1.SyncStateFailed)
	s.stop()
	s.start(0)
	record := s.waitForState(v1alpha1.SyncStateManualIntervention)
	s.put("api", "shop/api:2", with(true, "spec", "paused"))
	retried, err := syncstatus.Move(record, syncstatus.Step{To: v1alpha1.SyncStateRetrying, By: "eve", At: s.clock.Now()})
	if err != nil {
		t.Fatal(err)
	}
	s.api.Put(retried)
	s.waitForState(v1alpha1.SyncStateApplied)
	s.eventually("the Event about the recovery", func() error {
		lines := s.events.Lines()
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "teams/shop Normal Recovered") }) {
			return fmt.Errorf("%q", lines)
		}
		return nil
	})
	s.stepWindow()
	counts := map[string]int{}
	for _, event := range s.events.Lines() {
		kind, _, _ := strings.Cut(strings.TrimPrefix(event, "teams/shop "), ":")
		counts[kind]++
		if strings.Contains(event, "hunter2") {
			t.Errorf("Event contains content of the object: %s", event)
		}
	}
	for _, once := range []string{"Warning PatchFailed", "Warning ManualIntervention", "Normal Recovered"} {
		if counts[once] != 1 {
			t.Errorf("%s occurs %d times in %q", once, counts[once], s.events.Lines())
		}
	}
}

func TestEventsReportMissingSources(t *testing.T) {
	s := newFixture(t, appCatalog("shop", "api", "worker"), withoutSource(appCatalog("lost", "api")))
	s.start(0)
	s.waitForRevision("shop", 1)
	s.eventually("the Event about the other catalog's source", func() error {
		for _, event := range s.events.Lines() {
			if event == "teams/lost Warning SourceNotFound: There is no namespace nowhere" {
				return nil
			}
		}
		return fmt.Errorf("%q", s.events.Lines())
	})
}

// withoutSource sets a source namespace that does not exist.
func withoutSource(catalog *v1alpha1.AppCatalog) *v1alpha1.AppCatalog {
	catalog.Spec.SourceNamespace = "nowhere"
	return catalog
}

// suspendNotices suspends Events in the SyncPolicy, or resumes them.
func (s *fixture) suspendNotices(suspend bool) {
	s.Helper()
	s.api.Put(&v1alpha1.SyncPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.SyncPolicyName},
		Spec:       v1alpha1.SyncPolicySpec{Suspend: v1alpha1.SuspendedWork{CatalogNotices: suspend}},
	})
}

// TestNoticesAreSuspendedByThePolicy changes a workload repeatedly until the running server has read the policy.
func TestNoticesAreSuspendedByThePolicy(t *testing.T) {
	s := newFixture(t, appCatalog("shop", "api", "worker"))
	s.suspendNotices(true)
	s.start(0)
	s.waitForRevision("shop", 1)
	s.waitForWatches()
	s.stepWindow()
	if got := s.events.Lines(); len(got) > 0 {
		t.Fatalf("Events were published while suspended: %q", got)
	}
	revision := int64(1)
	change := func() (events int) {
		before := len(s.events.Lines())
		revision++
		s.put("api", fmt.Sprintf("shop/api:%d", revision))
		s.waitForRevision("shop", revision)
		s.stepWindow()
		return len(s.events.Lines()) - before
	}
	for _, suspend := range []bool{false, true} {
		s.suspendNotices(suspend)
		for tries := 0; (change() == 0) != suspend; tries++ {
			if tries == 20 {
				t.Fatalf("suspended = %v, want %v", !suspend, suspend)
			}
		}
	}
	if got := int64(len(s.recordLines())); got != revision {
		t.Errorf("%d of %d changes were recorded", got, revision)
	}
}
