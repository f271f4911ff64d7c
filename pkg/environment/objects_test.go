// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/test/testkit/fakeapi"
)

// addEnvironment creates an environment as its user.
func (s *fixture) addEnvironment(e *v1alpha1.Environment) {
	s.Helper()
	e.Generation = 1
	v1alpha1.SetObjectDefaults_Environment(e)
	e.Status.PendingEdits = []v1alpha1.EnvironmentEdit{{Generation: 1, Actor: "eve", Time: metav1.NewTime(s.clock.Now())}}
	if e.Spec.AutoSync {
		e.Status.AutomatedBy = &v1alpha1.AutomatedBy{Username: "eve", Time: metav1.NewTime(s.clock.Now())}
	}
	s.api.Put(e)
}

// environment returns the environment with a name.
func (s *fixture) environment(name string) *v1alpha1.Environment {
	s.Helper()
	e := fakeapi.Get[*v1alpha1.Environment](s.api, environmenttest.Teams, name)
	if e == nil {
		s.Fatalf("environment %s does not exist", name)
	}
	return e
}

// change changes the environment alice.
func (s *fixture) change(change func(*v1alpha1.Environment)) {
	s.Helper()
	fakeapi.Change(s.api, environmenttest.Teams, "alice", change)
}

// edit changes the spec of alice as a user does.
func (s *fixture) edit(actor string, change func(*v1alpha1.EnvironmentSpec), fields ...string) {
	s.Helper()
	s.change(func(e *v1alpha1.Environment) {
		change(&e.Spec)
		e.Generation++
		e.Status.PendingEdits = append(e.Status.PendingEdits, v1alpha1.EnvironmentEdit{
			Generation: e.Generation, Actor: actor, Time: metav1.NewTime(s.clock.Now()), Fields: fields,
		})
	})
}

// ask requests a sync of alice.
func (s *fixture) ask(id, actor string, spec v1alpha1.SyncRequestSpec) {
	s.Helper()
	spec.Action = cmp.Or(spec.Action, v1alpha1.SyncActionAll)
	s.request(v1alpha1.PendingEnvironmentRequest{ID: id, Actor: actor, Type: v1alpha1.EnvironmentRequestSync, Sync: &spec})
}

func (s *fixture) request(request v1alpha1.PendingEnvironmentRequest) {
	s.Helper()
	request.Time = metav1.NewTime(s.clock.Now())
	s.change(func(e *v1alpha1.Environment) { e.Status.PendingRequests = append(e.Status.PendingRequests, request) })
}

// syncStatuses returns the records, oldest first.
func (s *fixture) syncStatuses() []*v1alpha1.SyncStatus {
	s.Helper()
	records := fakeapi.List[*v1alpha1.SyncStatus](s.api, environmenttest.Teams)
	slices.SortFunc(records, compareAges)
	return records
}

// recordLines returns the records, each as a line.
func (s *fixture) recordLines() []string {
	s.Helper()
	var lines []string
	for _, record := range s.syncStatuses() {
		lines = append(lines, lineOf(record))
	}
	return lines
}

func lineOf(record *v1alpha1.SyncStatus) string {
	status := &record.Status
	words := []string{string(record.Spec.Type), record.Spec.Batch, string(status.State)}
	if status.Preview {
		words = append(words, "preview")
	}
	if status.Actor != "" {
		words = append(words, "by "+status.Actor)
	}
	if status.Revision > 0 {
		words = append(words, fmt.Sprintf("r%d", status.Revision))
	}
	return strings.Join(words, " ")
}

// expectRecords waits until the records are these.
func (s *fixture) expectRecords(want ...string) {
	s.Helper()
	s.eventually("records", func() error {
		if got := s.recordLines(); !slices.Equal(got, want) {
			return fmt.Errorf("\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return nil
	})
}
