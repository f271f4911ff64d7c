// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/access"
	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// court is an access.Reviewer with fixed results.
type court struct {
	// lost has the missing permissions by user.
	lost   map[string]string
	closed error
	// failing is the user whose reviews fail.
	failing string
	// asked are the reviewed permissions as text.
	asked []string
}

func (c *court) Check(_ context.Context, who access.Holder, takes []access.Permission) (string, error) {
	for _, permission := range takes {
		c.asked = append(c.asked, who.String()+" "+permission.String())
	}
	if c.failing != "" && who.String() == c.failing {
		return "", errors.New("no answer about " + c.failing)
	}
	return c.lost[who.String()], c.closed
}

// plainly is a resolver of resources of the core group by their names.
type plainly struct{}

func (plainly) Preset() []schema.GroupResource { return nil }

func (plainly) Resolve(selection access.Selection) (resources []schema.GroupResource, unmatched []string, known bool) {
	for _, name := range selection.Resources {
		resources = append(resources, schema.GroupResource{Resource: name})
	}
	return resources, nil, true
}

// judged sets eve as the author of the rules, and returns permissions with a court.
func judged(in *inputs) (*permissions, *court) {
	for i, rule := range in.rules {
		in.rules[i] = rule.DeepCopy()
		in.rules[i].UID, in.rules[i].Status.EditedBy = types.UID(rule.Name), &v1alpha1.AutomatedBy{Username: "eve"}
	}
	for i, rule := range in.clusterRules {
		in.clusterRules[i] = rule.DeepCopy()
		in.clusterRules[i].UID, in.clusterRules[i].Status.EditedBy = types.UID(rule.Name), &v1alpha1.AutomatedBy{Username: "eve"}
	}
	judge := &court{}
	p := &permissions{access: judge, resolver: plainly{}, reviews: map[types.UID]review{}}
	in.allow = p.allow
	return p, judge
}

const secretsLost = `user "eve" may not list configmaps`

var evesLoss = map[string]string{`user "eve"`: secretsLost}

func TestWhatTheAuthorOfARuleMayNotReadStaysAsItIs(t *testing.T) {
	for name, prepare := range map[string]func(*fixture){"rule": func(*fixture) {}, "cluster rule": byOnlyClusterRule} {
		t.Run(name, func(t *testing.T) {
			var p *permissions
			var judge *court
			s := newFixture(t, prepare, func(s *fixture) {
				p, judge = judged(&s.in)
				if err := p.checkNew(t.Context(), s.in); err != nil {
					t.Fatal(err)
				}
			})
			s.cluster.put(configMap("a"), "1")
			s.cluster.put(configMap("b"), "1")
			s.mirrored()

			judge.lost = evesLoss
			s.stays("main", func() {
				if changed, err := p.checkAll(t.Context(), s.in); !changed || err != nil {
					t.Fatalf("changed %v, error %v", changed, err)
				}
				s.plan()
				s.cluster.put(configMap("a"), "2")
				s.cluster.remove(configMap("b"))
			})

			judge.lost = nil
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
		before, then func(*inputs, *court)
		reason       string
		asked        int
		fails        bool
	}{
		{name: "one who may", asked: 1},
		{name: "one who may not", then: func(_ *inputs, c *court) { c.lost = evesLoss }, reason: v1alpha1.ReasonPermissionLost, asked: 1},
		{
			name: "one of whom nothing is known", then: func(_ *inputs, c *court) { c.closed = errors.New("no answer") },
			reason: v1alpha1.ReasonProgressing, asked: 1, fails: true,
		},
		{
			name: "one who may, as is known", before: func(*inputs, *court) {},
			then: func(_ *inputs, c *court) { c.closed = errors.New("no answer") }, asked: 1,
		},
		{
			name: "one who may not, with another spec", before: func(*inputs, *court) {},
			then: func(in *inputs, c *court) { next(in); c.lost = evesLoss }, reason: v1alpha1.ReasonPermissionLost, asked: 2,
		},
		{
			name: "another one", before: func(_ *inputs, c *court) { c.lost = evesLoss },
			then: func(in *inputs, _ *court) { next(in); in.rules[0].Status.EditedBy.Username = "adam" }, asked: 2,
		},
		{
			name: "nobody", then: func(in *inputs, c *court) { in.rules[0].Status.EditedBy, c.lost = nil, evesLoss },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := world()
			in.rules = in.rules[:1]
			p, judge := judged(&in)
			if tt.before != nil {
				tt.before(&in, judge)
				if err := p.checkNew(t.Context(), in); err != nil {
					t.Fatal(err)
				}
			}
			if tt.then != nil {
				tt.then(&in, judge)
			}
			if err := p.checkNew(t.Context(), in); (err != nil) != tt.fails {
				t.Errorf("error %v", err)
			}
			planned := newPlan(in).rules[nameOf(in.rules[0])]
			found := planned.problem
			if lost := tt.reason == v1alpha1.ReasonPermissionLost; found.Code != tt.reason || lost && !strings.Contains(found.Message, secretsLost) {
				t.Errorf("problem %+v, want %q", found, tt.reason)
			}
			if len(judge.asked) != tt.asked {
				t.Errorf("asked %q, want %d questions", judge.asked, tt.asked)
			}
		})
	}
}

func TestReviewsOfDeletedRulesAreForgotten(t *testing.T) {
	in := world()
	p, judge := judged(&in)
	if err := p.checkNew(t.Context(), in); err != nil || len(p.reviews) == 0 {
		t.Fatalf("%d are known, error %v", len(p.reviews), err)
	}
	want := `user "eve" list and watch configmaps in the namespace shop`
	if len(judge.asked) == 0 || judge.asked[0] != want {
		t.Errorf("asked %q, want %q", judge.asked, want)
	}
	in.rules, in.clusterRules = nil, nil
	if err := p.checkNew(t.Context(), in); err != nil || len(p.reviews) > 0 {
		t.Errorf("%d are known still, error %v", len(p.reviews), err)
	}
}

// TestFailedReviewKeepsTheLastResult checks that the last result stays valid while reviews fail.
func TestFailedReviewKeepsTheLastResult(t *testing.T) {
	in := world()
	p, judge := judged(&in)
	if err := p.checkNew(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	judge.closed, judge.lost = errors.New("no answer"), evesLoss
	if changed, err := p.checkAll(t.Context(), in); changed || !errors.Is(err, judge.closed) {
		t.Errorf("changed %v, error %v", changed, err)
	}
	if found := p.allow(in.rules[0], &in.rules[0].Status); !found.IsZero() {
		t.Errorf("problem %+v", found)
	}
}

// TestFailedReviewDoesNotBlockOthers has the review of the first rule's author fail.
func TestFailedReviewDoesNotBlockOthers(t *testing.T) {
	in := world()
	p, judge := judged(&in)
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
		if found := p.allow(rule, &rule.Status); !found.IsZero() {
			t.Errorf("before: problem of %s %+v", rule.Name, found)
		}
	}
	judge.failing, judge.lost = `user "adam"`, evesLoss
	if changed, err := p.checkAll(t.Context(), in); !changed || err == nil {
		t.Errorf("changed %v, error %v", changed, err)
	}
	if found := p.allow(in.rules[1], &in.rules[1].Status); found.Code != v1alpha1.ReasonPermissionLost {
		t.Errorf("problem %+v", found)
	}
	if found := p.allow(in.rules[0], &in.rules[0].Status); !found.IsZero() {
		t.Errorf("problem of an unknown rule %+v", found)
	}
}
