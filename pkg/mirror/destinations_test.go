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
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/test/testkit"
)

func TestSuspend(t *testing.T) {
	s := newFixture(t, perChange)
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.idle()
	s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Suspend = true })
	s.cluster.put(configMap("a"), "2")
	s.cluster.put(configMap("b"), "1")
	testkit.Eventually(t, "rows", func() error {
		if r := s.record("main"); r.PendingChanges != 2 || !strings.HasPrefix(r.State, "Suspended, 2 changes wait") {
			return fmt.Errorf("%d pending changes, state %s", r.PendingChanges, r.State)
		}
		return nil
	})
	if ready := s.ready("main"); ready.Reason != v1alpha1.ReasonSuspended {
		t.Errorf("Ready = %+v", ready)
	}
	// Edits of others in the meantime are reverted, too.
	other := s.otherWriter()
	if err := other.edit("edit", other.write("clusters/a/core/v1/configmaps/shop/added.yaml", "x")); err != nil {
		t.Fatal(err)
	}
	s.stop()
	s.start()
	if files, _ := s.files("main"); len(files) != 2 {
		t.Errorf("files = %v", files)
	}
	s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Suspend = false })
	s.mirrored()
	if got := strings.Join(s.commits("main"), ", "); !strings.Contains(got, "[UPDATE] v1/configmaps shop/a, [CREATE] v1/configmaps shop/b") {
		t.Errorf("commits = %s", got)
	}
}

// TestSuspendOneOfSeveral moves a branch while one of its destinations is suspended and the others are not.
func TestSuspendOneOfSeveral(t *testing.T) {
	s := newFixture(t, onBranch("other", "main", "b"))
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

// TestResumeAfterTheBranchWasReadAgain loads the branch without the folder of a suspended destination.
func TestResumeAfterTheBranchWasReadAgain(t *testing.T) {
	s := newFixture(t, onBranch("other", "main", "b"))
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.holds("main", "b", inShop)
	s.idle()
	s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Suspend = true })
	moved := s.in.destinations[1].DeepCopy()
	moved.Spec.BaseFolder = "c"
	s.replan(func(in *inputs) { in.destinations[1] = moved })
	s.holds("main", "c", inShop)
	s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Suspend = false })
	s.cluster.put(configMap("b"), "1")
	s.mirrored()
	s.holds("main", "c", inShop)
}

func TestDestinationIsDeletedWithRowsPending(t *testing.T) {
	s := newFixture(t, onBranch("other", "main", "b"))
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.holds("main", "b", inShop)
	s.idle()
	s.git.guard(down)
	for i := range 300 {
		s.cluster.put(configMap(fmt.Sprint(i)), "1")
	}
	testkit.Eventually(t, "rows", func() error {
		if s.record("main").PendingChanges < 300 || s.record("other").PendingChanges < 300 || s.record("main").QueueDepth < 600 {
			return errors.New("too few")
		}
		return nil
	})
	s.replan(func(in *inputs) { in.destinations, in.rules = in.destinations[1:], in.rules[1:] })
	if n, err := s.shared.Store.Table("outbox").Count(t.Context(), "shop-main/"); n != 0 || err != nil {
		t.Errorf("%d rows of a deleted destination, error %v", n, err)
	}
	s.git.refusesTwice()
	s.git.guard(nil)
	s.holds("main", "b", inShop)
	s.holds("main", "clusters/a", func(o outbox.Object) bool { return o.Name == "a" })
}

func TestRecreatedDestination(t *testing.T) {
	s := newFixture(t)
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.idle()
	s.git.guard(down)
	s.cluster.put(configMap("b"), "1")
	testkit.Eventually(t, "rows", func() error {
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
		t.Errorf("record = %+v", r)
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
			s := newFixture(t, onBranch("other", "main", "b"))
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
	s := newFixture(t, func(s *fixture) {
		s.in.rules[0].Spec.Rules[0].Resources = []string{"configmaps", "secrets"}
		s.in.destinations[0].Spec.Secrets = v1alpha1.SecretsAsIs
	})
	both := func(o outbox.Object) bool { return o.Namespace == "shop" }
	policy := func(policy v1alpha1.SecretsPolicy) {
		s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Secrets = policy })
	}
	s.cluster.put(configMap("a"), "1")
	s.cluster.put(secret("s"), "c2VjcmV0")
	s.holds("main", "clusters/a", both)
	// Omitted types need no permission to be listed.
	policy(v1alpha1.SecretsOmit)
	s.mirrored() // without the Secret
	s.cluster.put(secret("s"), "YW5vdGhlcg==")
	s.stays("main", func() {})
	policy(v1alpha1.SecretsAsIs)
	s.holds("main", "clusters/a", both)
	policy(v1alpha1.SecretsOmit)
	s.mirrored()
	s.idle()
	s.watches.mu.Lock()
	defer s.watches.mu.Unlock()
	for watch := range s.watches.states {
		if watch.Resource.Resource == "secrets" {
			t.Errorf("%s is watched", watch)
		}
	}
}

// TestCredentialsAreNotShared checks that two configurations with one URL do not use each other's credentials, also if their own are
// rejected, and that no credentials are visible.
func TestCredentialsAreNotShared(t *testing.T) {
	s := newFixture(t, func(s *fixture) {
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
			t.Errorf("condition contains a password: %s", text)
		}
	}
	// Rotated credentials are read automatically.
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
	s := newFixture(t, perChange, func(s *fixture) {
		most := int32(3)
		s.in.repositories[0].Spec.Push = &v1alpha1.PushPolicy{MaxCommits: &most, Interval: &metav1.Duration{Duration: time.Second}}
	})
	s.idle()
	s.git.guard(down)
	for i := range 10 {
		s.cluster.put(configMap(fmt.Sprint(i)), "1")
	}
	s.waitReady("main", v1alpha1.ReasonRepositoryUnreachable)
	s.waitPending("main", 10) // A later change has a push of its own.
	before := s.process.times("after push")
	s.git.guard(nil)
	s.mirrored()
	s.idle()
	if pushes, commits := s.process.times("after push")-before, len(s.commits("main")); pushes != 4 || commits != 10 {
		t.Errorf("%d commits in %d pushes, want 10 in 4", commits, pushes)
	}
}
