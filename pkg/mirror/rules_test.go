// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/source"
)

func secret(name string) Object {
	return Object{Version: "v1", Resource: "secrets", Namespace: "shop", Name: name}
}

// byClusterRule lets a ClusterWatchRule select the ConfigMaps of the namespaces of team shop
// instead of the rule of world.
func byClusterRule(s *stage) {
	s.in.rules = s.in.rules[1:]
	s.in.destinations[0].Spec.AccessPolicy = &v1alpha1.AccessPolicy{AllowClusterRules: true}
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

// replan changes what users have written and puts it into force.
func (s *stage) replan(change func(*inputs)) {
	s.t.Helper()
	change(&s.in)
	s.plan()
}

// edit replaces the first destination by a changed copy, as an informer does.
func (s *stage) edit(change func(*v1alpha1.GitDestination)) {
	s.t.Helper()
	next := s.in.destinations[0].DeepCopy()
	change(next)
	s.replan(func(in *inputs) { in.destinations[0] = next })
}

// stays fails if a branch changes although everything has been done.
func (s *stage) stays(branch string, do func()) {
	s.t.Helper()
	s.idle()
	before := s.mustRun("rev-parse", branch)
	do()
	s.idle()
	if after := s.mustRun("rev-parse", branch); after != before {
		s.t.Errorf("commits that nobody asked for:\n%s", s.mustRun("log", "--stat", before+".."+after))
	}
}

func none(Object) bool { return false }

func TestRuleThatGoesTakesItsFiles(t *testing.T) {
	s := newStage(t, onBranch("other", "main", "b"))
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

func TestRuleThatIsNotInForceTakesNothing(t *testing.T) {
	s := newStage(t)
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.stays("main", func() {
		s.replan(func(in *inputs) {
			in.rules[0] = in.rules[0].DeepCopy()
			in.rules[0].Spec.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Never"}}}
		})
	})
}

func TestObjectSelector(t *testing.T) {
	s := newStage(t, func(s *stage) {
		s.in.rules[0].Spec.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"mirror": "yes"}}
	})
	labelled := func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"mirror": "yes"}) }
	is := func(names ...string) func(Object) bool {
		return func(o Object) bool { return strings.Contains(strings.Join(names, " "), o.Name) }
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
	s := newStage(t)
	for i := range 4 {
		s.cluster.put(configMap(fmt.Sprint(i)), "1")
	}
	s.mirrored()
	s.idle()
	held := func(want int64) {
		t.Helper()
		eventually(t, "held", func() error {
			if r := s.record("main"); r.OrphansHeld != want || r.Files != 4 || r.Objects != 4-want {
				return fmt.Errorf("%d held of %d files, %d objects; want %d held", r.OrphansHeld, r.Files, r.Objects, want)
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
	eventually(t, "the record", func() error {
		if r := s.record("main"); r.OrphansHeld != 0 || r.OrphansRemoved != 2 || r.Files != 2 || r.Objects != 2 {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	// What no rule selects any more goes by the same policy.
	s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Prune = v1alpha1.PruneNever })
	s.replan(func(in *inputs) { in.rules = nil })
	eventually(t, "two held", func() error {
		if n := s.record("main").OrphansHeld; n != 2 {
			return fmt.Errorf("%d held", n)
		}
		return nil
	})
	s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Prune = v1alpha1.PruneAlways })
	s.holds("main", "clusters/a", none)
}

// withRule is what is in force with the rule of world.
func (s *stage) withRule() inputs {
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
			s := newStage(t)
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
				eventually(t, "the operations that are selected", func() error {
					files, err := s.files("main")
					got := ""
					path := func(name string) string { return "clusters/a/core/v1/configmaps/shop/" + name + ".yaml" }
					if _, ok := files[path("new")]; ok {
						got += "create "
					}
					if files[path("changes")] != files[path("marker")] && files[path("changes")] == s.cluster.rendered(inShop)["core/v1/configmaps/shop/changes.yaml"] {
						got += "update "
					}
					if _, ok := files[path("goes")]; !ok {
						got += "delete "
					}
					if got = strings.TrimSpace(got); got != tc.want || err != nil {
						return fmt.Errorf("%s, want %s, %w", got, tc.want, err)
					}
					return nil
				})
			}
			s.cluster.put(configMap("new"), "1")
			s.cluster.put(configMap("changes"), "2")
			s.cluster.remove(configMap("goes"))
			check()
			s.idle()
			check()
			s.stop()
			s.start() // a comparison does what events do
			s.idle()
			check()
		})
	}
}

func TestMirrorAnnotation(t *testing.T) {
	out := map[string]string{annotationMirror: "false"}
	leave := func(o *unstructured.Unstructured) { o.SetAnnotations(out) }
	s := newStage(t)
	s.cluster.put(configMap("a"), "1")
	s.cluster.put(configMap("b"), "1")
	s.mirrored()
	s.idle()
	s.cluster.put(configMap("b"), "1", leave)
	s.holds("main", "clusters/a", func(o Object) bool { return o.Name == "a" })
	s.cluster.put(configMap("b"), "2")
	s.mirrored()
	s.relabel(source.Namespace{Name: "shop", Labels: labels.Set{"team": "shop"}, Annotations: out})
	s.holds("main", "clusters/a", none)
	s.cluster.put(configMap("c"), "1")
	s.relabel(source.Namespace{Name: "shop", Labels: labels.Set{"team": "shop"}})
	s.mirrored()
	lists := s.cluster.listed()
	s.relabel(source.Namespace{Name: "dev", Annotations: out})
	s.idle()
	if n := s.cluster.listed() - lists; n != 0 {
		t.Errorf("%d lists for a namespace that no rule selects", n)
	}
}

func TestNamespaceSelector(t *testing.T) {
	s := newStage(t, byClusterRule)
	s.cluster.put(configMap("a"), "1")
	s.cluster.put(Object{Version: "v1", Resource: "configmaps", Namespace: "dev", Name: "b"}, "1")
	s.mirrored()
	s.idle()
	all := func(o Object) bool { return o.resource() == configMaps }
	s.relabel(source.Namespace{Name: "dev", Labels: labels.Set{"team": "shop"}})
	s.holds("main", "clusters/a", all)
	s.relabel(source.Namespace{Name: "shop", Labels: labels.Set{"team": "none"}})
	s.holds("main", "clusters/a", func(o Object) bool { return o.Namespace == "dev" })
	s.cluster.put(configMap("c"), "1")
	s.relabel(source.Namespace{Name: "shop", Labels: labels.Set{"team": "shop"}})
	s.holds("main", "clusters/a", all)
}

func TestSuspend(t *testing.T) {
	s := newStage(t, perChange)
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.idle()
	s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Suspend = true })
	s.cluster.put(configMap("a"), "2")
	s.cluster.put(configMap("b"), "1")
	eventually(t, "rows", func() error {
		if r := s.record("main"); r.PendingChanges != 2 || !strings.HasPrefix(r.State, "Suspended, 2 changes wait") {
			return fmt.Errorf("%d rows, %s", r.PendingChanges, r.State)
		}
		return nil
	})
	if ready := s.ready("main"); ready.Reason != v1alpha1.ReasonSuspended {
		t.Errorf("Ready: %+v", ready)
	}
	// What others do meanwhile is undone, too.
	other := s.otherWriter()
	if err := other.edit("edit", other.write("clusters/a/core/v1/configmaps/shop/added.yaml", "x")); err != nil {
		t.Fatal(err)
	}
	s.stop()
	s.start()
	if files, _ := s.files("main"); len(files) != 2 {
		t.Errorf("files %v", files)
	}
	s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Suspend = false })
	s.mirrored()
	if got := strings.Join(s.commits("main"), ", "); !strings.Contains(got, "[UPDATE] v1/configmaps shop/a, [CREATE] v1/configmaps shop/b") {
		t.Errorf("commits %s", got)
	}
}

// A branch moves while one of its destinations is suspended and the others are not.
func TestSuspendOneOfSeveral(t *testing.T) {
	s := newStage(t, onBranch("other", "main", "b"))
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.holds("main", "b", inShop)
	s.idle()
	s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Suspend = true })
	other := s.otherWriter()
	if err := other.edit("edit", other.write("clusters/a/core/v1/configmaps/shop/added.yaml", "x")); err != nil {
		t.Fatal(err)
	}
	s.cluster.put(configMap("b"), "1")
	s.holds("main", "b", inShop)
	s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Suspend = false })
	s.mirrored()
}

func TestDestinationGoesWithRowsPending(t *testing.T) {
	s := newStage(t, onBranch("other", "main", "b"))
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.holds("main", "b", inShop)
	s.idle()
	s.git.guard(down)
	for i := range 300 {
		s.cluster.put(configMap(fmt.Sprint(i)), "1")
	}
	eventually(t, "rows", func() error {
		if s.record("main").PendingChanges < 300 || s.record("other").PendingChanges < 300 {
			return errors.New("too few")
		}
		return nil
	})
	s.replan(func(in *inputs) { in.destinations, in.rules = in.destinations[1:], in.rules[1:] })
	if n, err := s.services.outbox.table.Count(t.Context(), "shop-main/"); n != 0 || err != nil {
		t.Errorf("%d rows of a destination that is gone, %v", n, err)
	}
	s.git.guard(nil)
	s.holds("main", "b", inShop)
	s.holds("main", "clusters/a", func(o Object) bool { return o.Name == "a" })
}

func TestDestinationMadeAnewUnderItsName(t *testing.T) {
	s := newStage(t)
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.idle()
	s.git.guard(down)
	s.cluster.put(configMap("b"), "1")
	eventually(t, "rows", func() error {
		if s.record("main").PendingChanges == 0 {
			return errors.New("none")
		}
		return nil
	})
	for i := range 20 {
		s.edit(func(d *v1alpha1.GitDestination) { d.UID = types.UID(fmt.Sprint("uid-", i)) })
		s.cluster.put(configMap(fmt.Sprint("c", i)), "1")
	}
	s.git.guard(nil)
	s.mirrored()
	s.idle()
	if r := s.record("main"); r.PendingChanges != 0 || r.OldestPendingTime != nil {
		t.Errorf("record %+v", r)
	}
	s.stop()
	s.start()
	s.cluster.put(configMap("d"), "1")
	s.mirrored()
}

func TestDestinationMoves(t *testing.T) {
	for name, move := range map[string]func(*v1alpha1.GitDestination){
		"folder":        func(d *v1alpha1.GitDestination) { d.Spec.BaseFolder = "moved" },
		"folder within": func(d *v1alpha1.GitDestination) { d.Spec.BaseFolder = "clusters/a/moved" },
		"folder around": func(d *v1alpha1.GitDestination) { d.Spec.BaseFolder = "clusters" },
		"branch":        func(d *v1alpha1.GitDestination) { d.Spec.Branch = "moved" },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, onBranch("other", "main", "b"))
			s.cluster.put(configMap("a"), "1")
			s.mirrored()
			for i := range 20 {
				s.cluster.put(configMap(fmt.Sprint(i)), "1")
			}
			s.edit(move)
			spec := s.in.destinations[0].Spec
			s.cluster.put(configMap("after"), "1")
			s.cluster.remove(configMap("3"))
			s.holds(spec.Branch, spec.BaseFolder, inShop)
			s.holds("main", "b", inShop)
		})
	}
}

func TestSecrets(t *testing.T) {
	s := newStage(t, func(s *stage) {
		s.in.rules[0].Spec.Rules[0].Resources = []string{"configmaps", "secrets"}
		s.in.destinations[0].Spec.Secrets = v1alpha1.SecretsAsIs
	})
	both := func(o Object) bool { return o.Namespace == "shop" }
	policy := func(policy v1alpha1.SecretsPolicy) {
		s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Secrets = policy })
	}
	s.cluster.put(configMap("a"), "1")
	s.cluster.put(secret("s"), "c2VjcmV0")
	s.holds("main", "clusters/a", both)
	for _, without := range []v1alpha1.SecretsPolicy{v1alpha1.SecretsEncrypt, v1alpha1.SecretsOmit} {
		policy(without)
		s.mirrored() // without the Secret
		s.cluster.put(secret("s"), "YW5vdGhlcg==")
		s.stays("main", func() {})
		policy(v1alpha1.SecretsAsIs)
		s.holds("main", "clusters/a", both)
	}
	// Nobody has to be able to list what is left out.
	policy(v1alpha1.SecretsOmit)
	s.mirrored()
	s.idle()
	for watch := range s.watches.states {
		if watch.Resource.Resource == "secrets" {
			t.Errorf("%s is watched", watch)
		}
	}
}

// Two configurations of one URL have different credentials. Neither may use the other's,
// also when its own are refused, and none may be seen anywhere.
func TestCredentialsAreNotShared(t *testing.T) {
	s := newStage(t, func(s *stage) {
		s.in.repositories[0].Spec.SecretRef = &v1alpha1.SecretReference{Name: "good"}
		second := s.in.repositories[0].DeepCopy()
		second.Name, second.Spec.SecretRef.Name = "second", "bad"
		s.in.repositories = append(s.in.repositories, second)
		onBranch("other", "main", "b")(s)
		s.in.destinations[1].Spec.RepoRef.Name = "second"
		for name, password := range map[string]string{"good": "pa55-good", "bad": "pa55-bad"} {
			_, err := s.secrets.CoreV1().Secrets("shop").Create(context.Background(), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
				Data:       map[string][]byte{"username": []byte("user-" + name), "password": []byte(password)},
			}, metav1.CreateOptions{})
			if err != nil {
				s.t.Fatal(err)
			}
		}
		s.git.require("user-good", "pa55-good")
	})
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	ready := s.waitReady("other", v1alpha1.ReasonAuthenticationFailed)
	s.holds("main", "b", none)
	s.cluster.put(configMap("b"), "1")
	s.mirrored()
	s.holds("main", "b", none)
	for _, text := range []string{ready.Message, fmt.Sprintf("%+v", s.record("other")), fmt.Sprintf("%+v", s.record("main"))} {
		if strings.Contains(text, "pa55") {
			t.Errorf("a password is shown: %s", text)
		}
	}
	// Rotated credentials are read without anybody's doing.
	rotated, err := s.secrets.CoreV1().Secrets("shop").Get(t.Context(), "bad", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rotated.Data = map[string][]byte{"username": []byte("user-good"), "password": []byte("pa55-good")}
	if _, err := s.secrets.CoreV1().Secrets("shop").Update(t.Context(), rotated, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.holds("main", "b", inShop)
	s.mirrored()
}

func TestMaxCommitsOfAPush(t *testing.T) {
	s := newStage(t, perChange, func(s *stage) {
		most := int32(3)
		s.in.repositories[0].Spec.Push = &v1alpha1.PushPolicy{MaxCommits: &most, Interval: &metav1.Duration{Duration: time.Second}}
	})
	s.idle()
	s.git.guard(down)
	for i := range 10 {
		s.cluster.put(configMap(fmt.Sprint(i)), "1")
	}
	s.waitReady("main", v1alpha1.ReasonRepositoryUnreachable)
	before := s.life.times("after push")
	s.git.guard(nil)
	s.mirrored()
	s.idle()
	if pushes, commits := s.life.times("after push")-before, len(s.commits("main")); pushes != 4 || commits != 10 {
		t.Errorf("%d commits in %d pushes, want 10 in 4", commits, pushes)
	}
}
