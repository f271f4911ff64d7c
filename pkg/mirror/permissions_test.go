// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/access/accesstest"
	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// withReviewer sets eve as the author of the rules, and returns their permissions and the reviewer.
func withReviewer(in *inputs) (*permissions, *accesstest.Reviewer) {
	for i, rule := range in.rules {
		in.rules[i] = rule.DeepCopy()
		in.rules[i].UID, in.rules[i].Status.EditedBy = types.UID(rule.Name), &v1alpha1.AutomatedBy{Username: "eve"}
	}
	for i, rule := range in.clusterRules {
		in.clusterRules[i] = rule.DeepCopy()
		in.clusterRules[i].UID, in.clusterRules[i].Status.EditedBy = types.UID(rule.Name), &v1alpha1.AutomatedBy{Username: "eve"}
	}
	reviewer := &accesstest.Reviewer{}
	p := newPermissions(reviewer, (&Resolver{Policy: watch.DefaultPolicy()}).Of)
	in.allow = p.allow
	return p, reviewer
}

const (
	eve         = `user "eve"`
	secretsLost = eve + " may not list configmaps"
)

func TestWhatTheAuthorOfARuleMayNotReadStaysAsItIs(t *testing.T) {
	for name, prepare := range map[string]func(*fixture){"rule": func(*fixture) {}, "cluster rule": byOnlyClusterRule} {
		t.Run(name, func(t *testing.T) {
			var p *permissions
			var reviewer *accesstest.Reviewer
			s := newFixture(t, prepare, func(s *fixture) {
				p, reviewer = withReviewer(&s.in)
				if err := p.checkNew(t.Context(), s.in); err != nil {
					t.Fatal(err)
				}
			})
			s.cluster.put(configMap("a"), "1")
			s.cluster.put(configMap("b"), "1")
			s.mirrored()

			reviewer.Deny(eve, secretsLost)
			s.stays("main", func() {
				if changed, err := p.checkAll(t.Context(), s.in); !changed || err != nil {
					t.Fatalf("changed %v, error %v", changed, err)
				}
				s.plan()
				s.cluster.put(configMap("a"), "2")
				s.cluster.remove(configMap("b"))
			})

			reviewer.Allow()
			if changed, err := p.checkAll(t.Context(), s.in); !changed || err != nil {
				t.Fatalf("changed %v, error %v", changed, err)
			}
			s.plan()
			s.mirrored()
		})
	}
}

// byOnlyClusterRule is byClusterRule without other rules.
func byOnlyClusterRule(s *fixture) {
	s.in.rules = s.in.rules[:1]
	byClusterRule(s)
}

func TestRulesNeedTheirAuthorsPermissions(t *testing.T) {
	next := func(in *inputs) {
		in.rules[0] = in.rules[0].DeepCopy()
		in.rules[0].Generation++
	}
	tests := []struct {
		name string
		// before makes the earlier reviews; nil makes none.
		before, then func(*inputs, *accesstest.Reviewer)
		reason       string
		reviews      int
		fails        bool
	}{
		{name: "one who may", reviews: 1},
		{
			name: "one who may not", then: func(_ *inputs, r *accesstest.Reviewer) { r.Deny(eve, secretsLost) },
			reason: v1alpha1.ReasonPermissionLost, reviews: 1,
		},
		{
			name: "unknown permissions", then: func(_ *inputs, r *accesstest.Reviewer) { r.Fail("", errors.New("no answer")) },
			reason: v1alpha1.ReasonProgressing, reviews: 1, fails: true,
		},
		{
			name: "one who may, as is known", before: func(*inputs, *accesstest.Reviewer) {},
			then: func(_ *inputs, r *accesstest.Reviewer) { r.Fail("", errors.New("no answer")) }, reviews: 1,
		},
		{
			name: "one who may not, with another spec", before: func(*inputs, *accesstest.Reviewer) {},
			then: func(in *inputs, r *accesstest.Reviewer) { next(in); r.Deny(eve, secretsLost) }, reason: v1alpha1.ReasonPermissionLost, reviews: 2,
		},
		{
			name: "another one", before: func(_ *inputs, r *accesstest.Reviewer) { r.Deny(eve, secretsLost) },
			then: func(in *inputs, _ *accesstest.Reviewer) { next(in); in.rules[0].Status.EditedBy.Username = "adam" }, reviews: 2,
		},
		{
			name: "unknown editor", then: func(in *inputs, r *accesstest.Reviewer) { in.rules[0].Status.EditedBy = nil; r.Deny(eve, secretsLost) },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := world()
			in.rules = in.rules[:1]
			p, reviewer := withReviewer(&in)
			if tt.before != nil {
				tt.before(&in, reviewer)
				if err := p.checkNew(t.Context(), in); err != nil {
					t.Fatal(err)
				}
			}
			if tt.then != nil {
				tt.then(&in, reviewer)
			}
			if err := p.checkNew(t.Context(), in); (err != nil) != tt.fails {
				t.Errorf("error = %v", err)
			}
			planned := newPlan(in).rules[nameOf(in.rules[0])]
			found := planned.problem
			if lost := tt.reason == v1alpha1.ReasonPermissionLost; found.Code != tt.reason || lost && !strings.Contains(found.Message, secretsLost) {
				t.Errorf("problem = %+v, want %q", found, tt.reason)
			}
			if len(reviewer.Reviewed()) != tt.reviews {
				t.Errorf("reviewed %q, want %d permissions", reviewer.Reviewed(), tt.reviews)
			}
		})
	}
}

func TestReviewsOfDeletedRulesAreForgotten(t *testing.T) {
	in := world()
	p, reviewer := withReviewer(&in)
	if err := p.checkNew(t.Context(), in); err != nil || len(p.reviews) == 0 {
		t.Fatalf("%d reviews are stored, error %v", len(p.reviews), err)
	}
	want := `user "eve" list and watch configmaps in the namespace shop`
	if len(reviewer.Reviewed()) == 0 || reviewer.Reviewed()[0] != want {
		t.Errorf("reviewed %q, want %q", reviewer.Reviewed(), want)
	}
	in.rules, in.clusterRules = nil, nil
	if err := p.checkNew(t.Context(), in); err != nil || len(p.reviews) > 0 {
		t.Errorf("%d reviews are still stored, error %v", len(p.reviews), err)
	}
}

// TestFailedReviewKeepsTheLastResult checks that the last result stays valid while reviews fail.
func TestFailedReviewKeepsTheLastResult(t *testing.T) {
	in := world()
	p, reviewer := withReviewer(&in)
	if err := p.checkNew(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	failure := errors.New("no answer")
	reviewer.Fail("", failure)
	reviewer.Deny(eve, secretsLost)
	if changed, err := p.checkAll(t.Context(), in); changed || !errors.Is(err, failure) {
		t.Errorf("changed %v, error %v", changed, err)
	}
	if _, found := p.allow(in.rules[0], &in.rules[0].Status); !found.IsZero() {
		t.Errorf("problem = %+v", found)
	}
}

// TestFailedReviewDoesNotBlockOthers has the review of the first rule's author fail.
func TestFailedReviewDoesNotBlockOthers(t *testing.T) {
	in := world()
	p, reviewer := withReviewer(&in)
	for len(in.rules) < 2 {
		another := in.rules[0].DeepCopy()
		another.Name, another.UID = "another", "another"
		in.rules = append(in.rules, another)
	}
	in.rules[0].Status.EditedBy.Username = "adam"
	if err := p.checkNew(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	for _, rule := range in.rules[:2] {
		if _, found := p.allow(rule, &rule.Status); !found.IsZero() {
			t.Errorf("before: problem of %s = %+v", rule.Name, found)
		}
	}
	reviewer.Fail(`user "adam"`, errors.New("no answer"))
	reviewer.Deny(eve, secretsLost)
	if changed, err := p.checkAll(t.Context(), in); !changed || err == nil {
		t.Errorf("changed %v, error %v", changed, err)
	}
	if _, found := p.allow(in.rules[1], &in.rules[1].Status); found.Code != v1alpha1.ReasonPermissionLost {
		t.Errorf("problem = %+v", found)
	}
	if _, found := p.allow(in.rules[0], &in.rules[0].Status); !found.IsZero() {
		t.Errorf("problem of an unknown rule = %+v", found)
	}
}

// typesLater returns the types of the cluster of world, and ConfigMaps of another group, which a rule of ConfigMaps selects, too.
func typesLater() *watch.Snapshot {
	return typesWith(watch.Type{
		Resource: schema.GroupVersionResource{Group: "later.example.com", Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap",
		Namespaced: true, Preferred: true, Watchable: true,
	})
}

// TestTypesThatAppearLaterAreReviewedFirst checks that a rule that selects one more type selects it once a review says that its author may
// read it, and that the rule stays in force without it while that is unknown.
func TestTypesThatAppearLaterAreReviewedFirst(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare func(*accesstest.Reviewer)
		reason  string
		types   int
	}{
		"may not":           {func(r *accesstest.Reviewer) { r.Deny(eve, secretsLost) }, v1alpha1.ReasonPermissionLost, 2},
		"cannot be checked": {func(r *accesstest.Reviewer) { r.Fail("", errors.New("no answer")) }, "", 1},
		"may":               {func(*accesstest.Reviewer) {}, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			in := world()
			in.rules = in.rules[:1]
			p, reviewer := withReviewer(&in)
			planned := func() *rulePlan { return newPlan(in).rules[nameOf(in.rules[0])] }
			if err := p.checkNew(t.Context(), in); err != nil || !planned().problem.IsZero() {
				t.Fatalf("error %v, problem %+v", err, planned().problem)
			}
			in.types = typesLater()
			tt.prepare(reviewer)
			if err := p.checkNew(t.Context(), in); (err != nil) != (name == "cannot be checked") {
				t.Error(err)
			}
			if got := planned(); got.problem.Code != tt.reason || len(got.types) != tt.types {
				t.Errorf("problem %+v, types %v; want %q and %d", got.problem, got.types, tt.reason, tt.types)
			}
			reviewer.Allow()
			if err := p.checkNew(t.Context(), in); err != nil {
				t.Error(err)
			}
			if got := planned(); tt.reason == "" && len(got.types) != 2 {
				t.Errorf("types %v after the review", got.types)
			}
		})
	}
}

// TestPeriodicReviewOfOtherTypes has a periodic review end after that of a plan with more types. Another plan must follow.
func TestPeriodicReviewOfOtherTypes(t *testing.T) {
	in := world()
	in.rules, in.clusterRules = in.rules[:1], nil
	p, _ := withReviewer(&in)
	later := in
	later.types = typesLater()
	if err := p.checkNew(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	if changed, err := p.checkAll(t.Context(), in); !changed || err != nil {
		t.Errorf("periodic review of fewer types: changed %v, error %v", changed, err)
	}
	if err := p.checkNew(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	if changed, err := p.checkAll(t.Context(), later); changed || err != nil {
		t.Errorf("periodic review of the same types: changed %v, error %v", changed, err)
	}
	if planned := newPlan(later).rules[nameOf(in.rules[0])]; len(planned.types) != 2 || !planned.problem.IsZero() {
		t.Errorf("types %v, problem %+v", planned.types, planned.problem)
	}
}
