// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// eventLog is what Events have been made.
type eventLog struct {
	mu    sync.Mutex
	lines []string
}

// Event notes one as a line.
func (l *eventLog) Event(object runtime.Object, eventType, reason, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := ""
	if about, err := meta.Accessor(object); err == nil {
		name = about.GetName()
	}
	l.lines = append(l.lines, fmt.Sprintf("%s %s %s: %s", name, eventType, reason, message))
}

// told are the Events since the beginning.
func (l *eventLog) told() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// promptsTold are the Events about what users can ask for, without the names of records.
func (s *fixture) promptsTold() (out []string) {
	for _, line := range s.events.told() {
		if strings.Contains(line, "Offered") || strings.Contains(line, "DependenciesChanged") {
			out = append(out, line)
		}
	}
	return out
}

// Each prompt has one Event, however often its environment is looked at, and by however many processes.
func TestPromptsAreToldOnce(t *testing.T) {
	s := newFixture(t)
	s.start(0)
	s.ask("one", "jane", v1alpha1.SyncRequestSpec{})
	s.applied(1)
	shown := func(revision int64, record string) {
		t.Helper()
		s.reaches("the prompts", func(e *v1alpha1.Environment) bool {
			return e.Status.LatestRevision == revision && e.Status.ChangedWorkloadCount == 1 && e.Status.LatestDependencySync == record
		})
	}
	s.offer(2, image(web, "2"), worker)
	changed := s.prompt("batch").Name
	shown(2, changed)
	s.pass(10)
	s.stop()
	s.start(0)
	s.pass(10)
	shown(2, changed)
	s.offer(3, image(web, "3"), worker)
	shown(3, changed)
	s.stop()
	s.start(0)
	s.pass(10)
	shown(3, changed)
	got := s.promptsTold()
	slices.Sort(got)
	want := []string{
		"alice Normal DependenciesChanged: SyncStatus " + changed + ": 1 ConfigMap changed in the source",
		"alice Normal Offered: The catalog offers revision 2 (SyncStatus shop-r2), and the environment holds revision 1",
		"alice Normal Offered: The catalog offers revision 3 (SyncStatus shop-r3), and the environment holds revision 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What is taken by itself is no prompt.
func TestAutomaticSyncsPromptForNothing(t *testing.T) {
	s := newFixture(t, automatic)
	s.start(0)
	s.applied(1)
	s.offer(2, image(web, "2"), worker)
	s.applied(2)
	if got := s.promptsTold(); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}
