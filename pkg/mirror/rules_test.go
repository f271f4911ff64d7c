// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/test/testkit"
)

func secret(name string) outbox.Object {
	return outbox.Object{Version: "v1", Resource: "secrets", Namespace: "shop", Name: name}
}

// byClusterRule replaces the rule of world by a ClusterWatchRule that selects the ConfigMaps of the namespaces of team shop.
func byClusterRule(s *fixture) {
	s.in.rules = s.in.rules[1:]
	s.in.allowClusterRules()
	s.in.clusterRules = []*v1alpha1.ClusterWatchRule{{
		ObjectMeta: metav1.ObjectMeta{Name: "all"},
		Spec: v1alpha1.ClusterWatchRuleSpec{
			DestinationRef: v1alpha1.NamespacedObjectReference{Namespace: "shop", Name: "main"},
			Rules: []v1alpha1.ClusterResourceRule{{
				ResourceRule: v1alpha1.ResourceRule{Name: "all", Resources: []string{"configmaps"}}, Scope: v1alpha1.ScopeNamespaced,
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}},
			}},
		},
	}}
}

// replan changes the inputs and applies a new plan.
func (s *fixture) replan(change func(*inputs)) {
	s.t.Helper()
	change(&s.in)
	s.plan()
}

// edit replaces the first destination by a changed copy, as an informer does.
func (s *fixture) edit(change func(*v1alpha1.GitDestination)) {
	s.t.Helper()
	next := s.in.destinations[0].DeepCopy()
	change(next)
	s.replan(func(in *inputs) { in.destinations[0] = next })
}

// stays fails if a branch changes although nothing is pending.
func (s *fixture) stays(branch string, do func()) {
	s.t.Helper()
	s.idle()
	before := s.mustRun("rev-parse", branch)
	do()
	s.idle()
	if after := s.mustRun("rev-parse", branch); after != before {
		s.t.Errorf("unexpected commits:\n%s", s.mustRun("log", "--stat", before+".."+after))
	}
}

func none(outbox.Object) bool { return false }

func TestDeletedRuleRemovesItsFiles(t *testing.T) {
	s := newFixture(t, onBranch("other", "main", "b"))
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.holds("main", "b", inShop)
	s.replan(func(in *inputs) { in.rules = in.rules[1:] })
	s.holds("main", "clusters/a", none)
	s.holds("main", "b", inShop)
	s.cluster.put(configMap("b"), "1")
	s.holds("main", "b", inShop)
	s.holds("main", "clusters/a", none)
}

func TestInvalidRuleRemovesNothing(t *testing.T) {
	s := newFixture(t)
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.stays("main", func() {
		s.replan(func(in *inputs) {
			in.rules[0] = in.rules[0].DeepCopy()
			in.rules[0].Spec.ObjectSelector = &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Never"}},
			}
		})
	})
}

func TestObjectSelector(t *testing.T) {
	s := newFixture(t, func(s *fixture) {
		s.in.rules[0].Spec.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"mirror": "yes"}}
	})
	labelled := func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"mirror": "yes"}) }
	is := func(names ...string) func(outbox.Object) bool {
		return func(o outbox.Object) bool { return strings.Contains(strings.Join(names, " "), o.Name) }
	}
	s.cluster.put(configMap("a"), "1")
	s.cluster.put(configMap("b"), "1", labelled)
	s.holds("main", "clusters/a", is("b"))
	s.cluster.put(configMap("a"), "1", labelled)
	s.holds("main", "clusters/a", is("a", "b"))
	s.cluster.put(configMap("b"), "1")
	s.holds("main", "clusters/a", is("a"))
	s.replan(func(in *inputs) {
		in.rules[0] = in.rules[0].DeepCopy()
		in.rules[0].Spec.ObjectSelector = nil
	})
	s.mirrored()
}

func TestPruneNeverHoldsAndCounts(t *testing.T) {
	s := newFixture(t)
	for i := range 4 {
		s.cluster.put(configMap(fmt.Sprint(i)), "1")
	}
	s.mirrored()
	s.idle()
	held := func(want int64) {
		t.Helper()
		testkit.Eventually(t, "held", func() error {
			if r := s.record("main"); r.OrphansHeld != want || r.Files != 4 || r.Objects != 4-want {
				return fmt.Errorf("%d orphans of %d files and %d objects are held, want %d", r.OrphansHeld, r.Files, r.Objects, want)
			}
			return nil
		})
	}
	s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Prune = v1alpha1.PruneNever })
	s.idle()
	held(0)
	s.cluster.remove(configMap("0"))
	held(1)
	s.cluster.remove(configMap("1"))
	held(2)
	s.cluster.put(configMap("1"), "1")
	held(1)
	s.stop()
	s.cluster.remove(configMap("2"))
	s.start()
	s.idle()
	held(2)
	s.replan(func(in *inputs) { in.rules = nil })
	held(4)
	s.replan(func(in *inputs) { *in = s.withRule() })
	held(2)
	s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Prune = v1alpha1.PruneAlways })
	s.mirrored()
	testkit.Eventually(t, "the record", func() error {
		if r := s.record("main"); r.OrphansHeld != 0 || r.OrphansRemoved != 2 || r.Files != 2 || r.Objects != 2 {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	// Files that no rule selects any more follow the same policy.
	s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Prune = v1alpha1.PruneNever })
	s.replan(func(in *inputs) { in.rules = nil })
	testkit.Eventually(t, "two held", func() error {
		if n := s.record("main").OrphansHeld; n != 2 {
			return fmt.Errorf("%d orphans are held", n)
		}
		return nil
	})
	s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Prune = v1alpha1.PruneAlways })
	s.holds("main", "clusters/a", none)
	want := "main Normal OrphansRemoved: A comparison with the cluster has removed 2 files of types that no rule selects any more from " +
		"branch main; the last commit is " + s.mustRun("rev-parse", "main")
	testkit.Eventually(t, "the Event", func() error {
		if events := s.events.Lines(); !slices.Contains(events, want) {
			return fmt.Errorf("%q", events)
		}
		return nil
	})
}

// TestPruneNeverCountsWhileComparing has objects changed while a comparison runs whose list is older.
func TestPruneNeverCountsWhileComparing(t *testing.T) {
	s := newFixture(t)
	labelled := func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"mirror": "yes"}) }
	for _, name := range []string{"a", "b", "c", "d"} {
		s.cluster.put(configMap(name), "1", labelled)
	}
	s.mirrored()
	s.idle()
	s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Prune = v1alpha1.PruneNever })
	s.replan(func(in *inputs) {
		in.rules[0].Spec.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"mirror": "yes"}}
	})
	s.cluster.put(configMap("never-mirrored"), "1")
	s.cluster.remove(configMap("c"))
	s.idle()
	d := s.destination("main")
	testkit.EventuallyTrue(t, "c is held", func() bool { return d.record.current().orphansHeld == 1 })

	listed, proceed := make(chan struct{}), make(chan struct{})
	s.cluster.afterList(func() { close(listed); <-proceed })
	before := d.seeds.report()[0].time
	d.seeds.invalidateAll()
	s.plan()
	<-listed
	s.cluster.remove(configMap("a"))
	s.cluster.remove(configMap("b"))
	s.cluster.put(configMap("c"), "1", labelled)
	s.cluster.put(configMap("never-mirrored"), "2")
	s.cluster.put(configMap("short"), "1", labelled)
	s.cluster.remove(configMap("short")) // Its creation is pushed.
	s.cluster.put(configMap("d"), "2")   // Without its label.
	testkit.EventuallyTrue(t, "the events have arrived", func() bool {
		d.record.mu.Lock()
		defer d.record.mu.Unlock()
		return len(d.record.noted) == 6 && d.record.noted["core/v1/configmaps/shop/d.yaml"].held
	})
	close(proceed)
	testkit.EventuallyTrue(t, "compared again", func() bool { return d.seeds.report()[0].time.After(before) })
	s.idle()
	testkit.Eventually(t, "a, b, d and short are held", func() error {
		if r := s.record("main"); r.OrphansHeld != 4 || r.Files != 5 || r.Objects != 1 {
			return fmt.Errorf("%d orphans of %d files and %d objects are held", r.OrphansHeld, r.Files, r.Objects)
		}
		return nil
	})
}

// withRule returns the inputs with the rule of world.
func (s *fixture) withRule() inputs {
	in := s.in
	in.rules = world().rules
	return in
}

func TestOperations(t *testing.T) {
	for _, tc := range []struct {
		operations []v1alpha1.Operation
		want       string // of create, update, delete those that reach Git
	}{
		{[]v1alpha1.Operation{v1alpha1.OperationCreate, v1alpha1.OperationUpdate}, "create update"},
		{[]v1alpha1.Operation{v1alpha1.OperationCreate, v1alpha1.OperationDelete}, "create delete"},
		{[]v1alpha1.Operation{v1alpha1.OperationUpdate, v1alpha1.OperationDelete}, "update delete"},
		{[]v1alpha1.Operation{v1alpha1.OperationAll}, "create update delete"},
	} {
		t.Run(tc.want, func(t *testing.T) {
			s := newFixture(t)
			for _, name := range []string{"changes", "goes", "marker"} {
				s.cluster.put(configMap(name), "1")
			}
			s.mirrored()
			s.idle()
			s.replan(func(in *inputs) {
				in.rules[0] = in.rules[0].DeepCopy()
				in.rules[0].Spec.Rules[0].Operations = tc.operations
			})
			s.idle()
			check := func() {
				t.Helper()
				testkit.Eventually(t, "the operations that are selected", func() error {
					files, err := s.files("main")
					got := ""
					path := func(name string) string { return "clusters/a/core/v1/configmaps/shop/" + name + ".yaml" }
					if _, ok := files[path("new")]; ok {
						got += "create "
					}
					if files[path("changes")] != files[path("marker")] &&
						files[path("changes")] == s.cluster.rendered(inShop)["core/v1/configmaps/shop/changes.yaml"] {
						got += "update "
					}
					if _, ok := files[path("goes")]; !ok {
						got += "delete "
					}
					if got = strings.TrimSpace(got); err == nil && got != tc.want {
						err = fmt.Errorf("%s, want %s", got, tc.want)
					}
					return err
				})
			}
			s.cluster.put(configMap("new"), "1")
			s.cluster.put(configMap("changes"), "2")
			s.cluster.remove(configMap("goes"))
			check()
			s.idle()
			check()
			s.stop()
			s.start() // a comparison has the same result as events
			s.idle()
			check()
		})
	}
}

func TestMirrorAnnotation(t *testing.T) {
	out := map[string]string{v1alpha1.AnnotationMirror: "false"}
	leave := func(o *unstructured.Unstructured) { o.SetAnnotations(out) }
	s := newFixture(t)
	s.cluster.put(configMap("a"), "1")
	s.cluster.put(configMap("b"), "1")
	s.mirrored()
	s.idle()
	s.cluster.put(configMap("b"), "1", leave)
	s.holds("main", "clusters/a", func(o outbox.Object) bool { return o.Name == "a" })
	s.cluster.put(configMap("b"), "2")
	s.mirrored()
	s.relabel(watch.Namespace{Name: "shop", Labels: labels.Set{"team": "shop"}, Annotations: out})
	s.holds("main", "clusters/a", none)
	s.cluster.put(configMap("c"), "1")
	s.relabel(watch.Namespace{Name: "shop", Labels: labels.Set{"team": "shop"}})
	s.mirrored()
	s.idle()
	lists := s.cluster.listed()
	s.relabel(watch.Namespace{Name: "dev", Annotations: out})
	s.idle()
	if n := s.cluster.listed() - lists; n != 0 {
		t.Errorf("%d lists of a namespace that no rule selects", n)
	}
}

func TestNamespaceSelector(t *testing.T) {
	s := newFixture(t, byClusterRule)
	s.cluster.put(configMap("a"), "1")
	s.cluster.put(outbox.Object{Version: "v1", Resource: "configmaps", Namespace: "dev", Name: "b"}, "1")
	s.mirrored()
	s.idle()
	all := func(o outbox.Object) bool { return o.GroupVersionResource() == configMaps }
	s.relabel(watch.Namespace{Name: "dev", Labels: labels.Set{"team": "shop"}})
	s.holds("main", "clusters/a", all)
	s.relabel(watch.Namespace{Name: "shop", Labels: labels.Set{"team": "none"}})
	s.holds("main", "clusters/a", func(o outbox.Object) bool { return o.Namespace == "dev" })
	s.cluster.put(configMap("c"), "1")
	s.relabel(watch.Namespace{Name: "shop", Labels: labels.Set{"team": "shop"}})
	s.holds("main", "clusters/a", all)
}

// TestGeneratedObjectsCanBeSelected checks that objects that the cluster generates are mirrored only with the annotation.
func TestGeneratedObjectsCanBeSelected(t *testing.T) {
	s := newFixture(t)
	made := configMap("kube-root-ca.crt")
	is := func(names ...string) func(outbox.Object) bool {
		return func(o outbox.Object) bool { return slices.Contains(names, o.Name) }
	}
	s.cluster.put(made, "1")
	s.cluster.put(configMap("a"), "1")
	s.holds("main", "clusters/a", is("a"))
	s.cluster.put(made, "1", func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{v1alpha1.AnnotationMirror: "true"})
	})
	s.holds("main", "clusters/a", is("a", "kube-root-ca.crt"))
	s.cluster.put(made, "1")
	s.holds("main", "clusters/a", is("a"))
}
