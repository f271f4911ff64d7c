// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/internal/environmenttest"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	"github.com/configbutler/slipstream/pkg/environment/syncer"
)

// requestOf returns a request for an environment of the catalog shop, with a target of its own.
func requestOf(number int, since syncer.Moment) syncer.Request {
	e := environmenttest.Environment()
	e.Name, e.UID = fmt.Sprint("environment-", number), types.UID(fmt.Sprint(number))
	e.Spec.TargetNamespace = fmt.Sprint("target-", number)
	return syncer.Request{Environment: e, Action: v1alpha1.SyncActionAll, Mode: syncer.ModePlan, Since: since}
}

// planned plans a request, and returns the objects that it changes.
func (s *fixture) planned(runner *syncer.Syncer, request syncer.Request) []string {
	s.Helper()
	result, err := runner.Run(s.Context(), request)
	if err != nil {
		s.Fatal(err)
	}
	var changes []string
	for _, step := range result.Plan.Steps {
		if step.Verb != plan.Leave {
			changes = append(changes, fmt.Sprint(step.Verb, " ", step.Key, " ", step.Namespace, " ", step.Apply.Object["data"]))
		}
	}
	slices.Sort(changes)
	return changes
}

// sourceRequests returns the number of requests to the cluster that are not about targets.
func (s *fixture) sourceRequests() int {
	return len(slices.DeleteFunc(s.cluster.TakeRequests(), func(request string) bool { return strings.Contains(request, "target-") }))
}

// TestEnvironmentsShareTheSource plans two environments of a catalog from one read, until the source changes.
func TestEnvironmentsShareTheSource(t *testing.T) {
	s := newFixture(t)
	runner := s.runner()
	since := runner.Moment()
	first := s.planned(runner, requestOf(1, since))
	if requests := s.sourceRequests(); requests == 0 {
		t.Error("the first plan reads nothing of the source")
	}
	second := s.planned(runner, requestOf(2, since))
	if requests := s.sourceRequests(); requests != 0 {
		t.Errorf("the second plan reads the source again, with %d requests", requests)
	}
	for i := range first {
		first[i] = strings.ReplaceAll(first[i], "target-1", "target-2")
	}
	if diff := cmp.Diff(first, second); diff != "" || len(first) != 5 {
		t.Errorf("plans differ:\n%s", diff)
	}

	s.put(strings.ReplaceAll(settings, "info", "debug"))
	s.offer(web)
	after := runner.Moment()
	for number := range 2 {
		changed := strings.Join(s.planned(runner, requestOf(number, after)), "\n")
		if !strings.Contains(changed, "debug") || strings.Contains(changed, "worker") {
			t.Errorf("the plan after a change is\n%s", changed)
		}
	}
	s.put(settings)
	if changed := strings.Join(s.planned(runner, requestOf(3, 0)), "\n"); !strings.Contains(changed, "info") {
		t.Errorf("a plan that names no moment is\n%s", changed)
	}
}

// TestSharingIsNoPermission shares what one requester can read with another who cannot read it, and with one who selects less.
func TestSharingIsNoPermission(t *testing.T) {
	s := newFixture(t)
	s.rights.Lose(`user "eve": get secrets production`)
	runner := s.runner()
	since := runner.Moment()
	as := func(number int, name string) syncer.Request {
		request := requestOf(number, since)
		who := access.Requesting(&v1alpha1.AutomatedBy{Username: name})
		request.Requester = &who
		return request
	}
	shows := func(what string, changes []string, has, lacks string) {
		t.Helper()
		if all := strings.Join(changes, "\n"); !strings.Contains(all, has) || strings.Contains(all, lacks) {
			t.Errorf("%s: has no %s, or %s:\n%s", what, has, lacks, all)
		}
	}
	shows("jane's plan", s.planned(runner, as(1, "jane")), "Secret database", "target-2")
	state, err := runner.StateReader.Read(t.Context(), as(2, "eve"))
	if err != nil || !state.Denied.Has(schema.GroupKind{Kind: "Secret"}) || slices.Contains(names(state.Source), "Secret database") {
		t.Errorf("eve's plan is made from %q, denied %v: %v", names(state.Source), state.Denied, err)
	}
	shows("eve's plan", s.planned(runner, as(2, "eve")), "ConfigMap settings", "Secret")
	one := as(3, "jane")
	one.Only = []v1alpha1.WorkloadReference{{Kind: "Deployment", Name: "worker"}}
	shows("the plan of one workload", s.planned(runner, one), "ConfigMap queue", "database")
}

// TestConcurrentPlans plans environments at the same time. Planning does not modify what is shared, and plans are those of environments
// that share nothing.
func TestConcurrentPlans(t *testing.T) {
	s := newReaderFixture(t, production(t)...)
	s.api.Put(s.catalog)
	reader := s.reader()
	since := (&syncer.Syncer{StateReader: reader}).Moment()
	planOne := func(ctx context.Context, request syncer.Request) ([]string, []*unstructured.Unstructured, error) {
		input, err := reader.Read(ctx, request)
		if err != nil {
			return nil, nil, err
		}
		planned, err := reader.Planner.Plan(ctx, input)
		if err != nil {
			return nil, nil, err
		}
		return stepLines(planned), slices.Concat(input.Source, input.Workloads), nil
	}
	const number = 8
	var shared, alone [number][]string
	var group errgroup.Group
	for i := range number {
		group.Go(func() (err error) {
			shared[i], _, err = planOne(t.Context(), requestOf(i, since))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	_, used, err := planOne(t.Context(), requestOf(0, since))
	if err != nil {
		t.Fatal(err)
	}
	for i := range number {
		var anew []*unstructured.Unstructured
		if alone[i], anew, err = planOne(t.Context(), requestOf(i, 0)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(alone[i], shared[i]); diff != "" || len(shared[i]) == 0 {
			t.Errorf("plans of environment %d differ:\n%s", i, diff)
		}
		if diff := cmp.Diff(byName(anew), byName(used)); diff != "" {
			t.Errorf("shared objects were modified:\n%s", diff)
		}
	}
}

func byName(objects []*unstructured.Unstructured) map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, o := range objects {
		all[plan.KeyOf(o).String()] = o.Object
	}
	return all
}
