// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit"
)

// beside adds a second installation in the cluster of the first. It writes to the same repository and does not know the objects of the
// first.
func beside(first *fixture, change ...func(*v1alpha1.GitDestination)) func(*fixture) {
	return func(s *fixture) {
		s.installation, s.secrets, s.leases, s.git = "system/two", first.secrets, first.leases, first.git
		s.in.repositories[0].Spec.RepoURL = first.in.repositories[0].Spec.RepoURL
		for _, each := range change {
			each(s.in.destinations[0])
		}
	}
}

func shortLeases(s *fixture) {
	s.leases = Leases{Namespace: "common", Duration: time.Second, Renew: 50 * time.Millisecond}
}

func TestTwoInstallationsWriteOneBranch(t *testing.T) {
	one := newFixture(t, perChange, shortLeases)
	two := furtherFixture(t, beside(one, func(d *v1alpha1.GitDestination) { d.Spec.BaseFolder = "clusters/b" }), perChange)
	one.idle()
	two.idle()
	puts := 0
	testkit.Eventually(t, "an installation waits for the Lease of the other", func() error {
		puts++
		for _, s := range []*fixture{one, two} {
			s.cluster.put(configMap("first"), fmt.Sprint(puts))
		}
		if one.ready("main").Reason != v1alpha1.ReasonLeaseHeldElsewhere && two.ready("main").Reason != v1alpha1.ReasonLeaseHeldElsewhere {
			return errors.New("no installation waits")
		}
		return nil
	})
	for i := range 50 {
		one.cluster.put(configMap(fmt.Sprint(i%10)), fmt.Sprint(i))
		two.cluster.put(configMap(fmt.Sprint(i%10)), fmt.Sprint(i))
	}
	one.mirrored()
	two.holds("main", "clusters/b", inShop)
	one.idle()
	two.idle()
	subjects := one.commits("main")
	if len(subjects) != 2*(puts+50) {
		t.Errorf("%d commits for %d changes of each:\n%s", len(subjects), puts+50, strings.Join(subjects, "\n"))
	}
	for _, s := range []*fixture{one, two} {
		if c := s.conflict("main"); c.Status != metav1.ConditionFalse {
			t.Errorf("%s: %s", s.installation, c.Message)
		}
	}
	if leases, err := one.secrets.CoordinationV1().Leases("common").List(t.Context(), metav1.ListOptions{}); err != nil ||
		len(leases.Items) != 1 {
		t.Errorf("%d Leases of one branch: %v", len(leases.Items), err)
	}
}

// TestTwoInstallationsClaimOneFolder checks that an installation does not take over the marker of another one whose GitDestination it does
// not know, or which has the same name.
func TestTwoInstallationsClaimOneFolder(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.GitDestination){
		"by different names": func(d *v1alpha1.GitDestination) { d.Name = "second" },
		"by one name":        func(*v1alpha1.GitDestination) {},
	} {
		t.Run(name, func(t *testing.T) {
			one := newFixture(t, shortLeases)
			one.cluster.put(configMap("a"), "1")
			one.mirrored()
			one.idle()
			two := furtherFixture(t, beside(one, exclusive, change), func(s *fixture) {
				s.in.rules[0].Spec.DestinationRef.Name = s.in.destinations[0].Name
			})
			claimant := two.in.destinations[0].Name
			two.cluster.put(configMap("b"), "1")
			two.waitConflict(claimant, metav1.ConditionTrue, "shop/main of another installation in this cluster, system/one")
			two.waitReady(claimant, v1alpha1.ReasonOwnedByAnother)
			one.cluster.put(configMap("c"), "1")
			one.mirrored()
			if owner, _ := one.marker(); owner.Instance != "system/one" {
				t.Errorf("marker = %+v", owner)
			}
			if subjects := one.commits("main"); len(subjects) != 2 ||
				slices.ContainsFunc(subjects, func(s string) bool { return strings.Contains(s, "shop/b") }) {
				t.Errorf("commits = %q", subjects)
			}
			one.waitConflict("main", metav1.ConditionFalse, "")
		})
	}
}
