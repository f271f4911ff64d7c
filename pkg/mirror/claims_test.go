// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit"
)

// older adds the destination mover, which is older than main. It mirrors Secrets, through a GitRepoConfig of its own for another
// repository, to folder b on main.
func older(change ...func(*v1alpha1.GitDestination)) func(*fixture) {
	return func(s *fixture) {
		onBranch("mover", "main", "b")(s)
		second := s.in.repositories[0].DeepCopy()
		second.Name, second.Spec.RepoURL = "second", s.git.url+"/second.git"
		s.in.repositories = append(s.in.repositories, second)
		mover := s.in.destinations[1]
		mover.CreationTimestamp, mover.Spec.Secrets = metav1.NewTime(time.Unix(500, 0)), v1alpha1.SecretsAsIs
		s.in.rules[1].Spec.Rules = []v1alpha1.ResourceRule{{Name: "all", Resources: []string{"secrets"}}}
		for _, each := range change {
			each(mover)
		}
	}
}

// move replaces the second destination by a changed copy.
func (s *fixture) move(change func(*v1alpha1.GitDestination)) {
	s.t.Helper()
	next := s.in.destinations[1].DeepCopy()
	change(next)
	s.replan(func(in *inputs) { in.destinations[1] = next })
}

// restart starts a new process with the claims that the statuses have, or without them.
func (s *fixture) restart(withClaims bool) {
	s.t.Helper()
	for i, d := range s.in.destinations {
		next := d.DeepCopy()
		if next.Status.Claim = nil; withClaims {
			next.Status.Claim = s.destination(d.Name).claim.Load().DeepCopy()
		}
		s.in.destinations[i] = next
	}
	s.stop()
	s.start()
}

// planned applies plans, as the planner does, until a destination has a problem with the code, none if that is empty.
func (s *fixture) planned(name, code string) {
	s.t.Helper()
	testkit.Eventually(s.t, name+" has the problem "+code, func() error {
		s.plan()
		if problem := s.destination(name).plan.Load().problem; problem.Code != code {
			return fmt.Errorf("%+v, claim %+v", problem, s.destination(name).claim.Load())
		}
		return nil
	})
}

// TestOlderDestinationMovesOntoAYoungerOne checks that a destination takes no folder that another one has, also after a restart, and if
// only the marker tells whose it is.
func TestOlderDestinationMovesOntoAYoungerOne(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare func(*v1alpha1.GitDestination)
		move    func(*fixture)
	}{
		"folder": {func(*v1alpha1.GitDestination) {}, func(s *fixture) {
			s.move(func(d *v1alpha1.GitDestination) { d.Spec.BaseFolder = "clusters/a" })
		}},
		"folder around": {func(*v1alpha1.GitDestination) {}, func(s *fixture) {
			s.move(func(d *v1alpha1.GitDestination) { d.Spec.BaseFolder = "clusters" })
		}},
		"branch": {func(d *v1alpha1.GitDestination) { d.Spec.Branch, d.Spec.BaseFolder = "own", "clusters/a" }, func(s *fixture) {
			s.move(func(d *v1alpha1.GitDestination) { d.Spec.Branch = "main" })
		}},
		"URL": {func(d *v1alpha1.GitDestination) { d.Spec.RepoRef.Name, d.Spec.BaseFolder = "second", "clusters/a" }, func(s *fixture) {
			next := s.in.repositories[1].DeepCopy()
			next.Spec.RepoURL, next.Generation = s.in.repositories[0].Spec.RepoURL, 2
			s.replan(func(in *inputs) { in.repositories[1] = next })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, older(tt.prepare))
			s.cluster.put(configMap("a"), "1")
			s.cluster.put(secret("s"), "c2VjcmV0")
			s.mirrored()
			s.idle()
			tt.move(s)
			keeps := func(configMapName string) {
				t.Helper()
				s.planned("mover", v1alpha1.ReasonFolderOverlaps)
				s.planned("main", "")
				s.cluster.put(configMap(configMapName), "1")
				s.mirrored()
				s.waitReady("main", v1alpha1.ReasonSucceeded)
				s.waitReady("mover", v1alpha1.ReasonFolderOverlaps)
				if owner, _ := s.marker(); owner.Name != "main" {
					t.Errorf("marker = %+v", owner)
				}
			}
			keeps("b")
			s.restart(true)
			if problem := s.destination("main").plan.Load().problem; !problem.IsZero() {
				t.Errorf("after a restart: %s", problem.Message)
			}
			keeps("c")
			s.restart(false)
			keeps("d")
			if removed := s.mustRun("log", "--diff-filter=D", "--name-only", "--format=", "main", "--", "clusters/a"); removed != "" {
				t.Errorf("files were removed: %s", removed)
			}
			// The folder is free once its destination has moved.
			s.edit(func(d *v1alpha1.GitDestination) { d.Spec.BaseFolder = "elsewhere" })
			s.holds("main", "elsewhere", inShop)
			s.planned("mover", "")
			s.waitReady("mover", v1alpha1.ReasonSucceeded)
		})
	}
}

// TestDestinationWithoutCredentialsExcludesNone checks that an older destination that cannot reach the repository does not keep a younger
// one, of another GitRepoConfig, from being mirrored.
func TestDestinationWithoutCredentialsExcludesNone(t *testing.T) {
	s := newFixture(t, older(func(d *v1alpha1.GitDestination) { d.Spec.RepoRef.Name, d.Spec.BaseFolder = "second", "clusters" }),
		func(s *fixture) {
			s.in.repositories[1].Spec.RepoURL = s.in.repositories[0].Spec.RepoURL
			s.in.repositories[1].Spec.SecretRef = &v1alpha1.SecretReference{Name: "missing"}
		})
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.planned("mover", v1alpha1.ReasonFolderOverlaps)
	s.waitReady("main", v1alpha1.ReasonSucceeded)
	if claim := s.destination("main").claim.Load(); claim.State != v1alpha1.ClaimWritten {
		t.Errorf("claim = %+v", claim)
	}
}

// TestDestinationWithAProblemKeepsItsFiles checks that the folder of a destination whose repository does not admit it any more is not
// given to another one.
func TestDestinationWithAProblemKeepsItsFiles(t *testing.T) {
	s := newFixture(t, older(func(d *v1alpha1.GitDestination) { d.Spec.RepoRef.Name = "second" }))
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.idle()
	allowed, none := s.in.repositories[0], s.in.repositories[0].DeepCopy()
	none.Spec.AllowedBranches, none.Generation = []string{"other"}, 2
	second := s.in.repositories[1].DeepCopy()
	second.Spec.RepoURL, second.Generation = allowed.Spec.RepoURL, 2
	s.replan(func(in *inputs) { in.repositories[0], in.repositories[1] = none, second })
	s.move(func(d *v1alpha1.GitDestination) { d.Spec.BaseFolder = "clusters/a" })
	s.waitReady("mover", v1alpha1.ReasonFolderOverlaps)
	s.mirrored()
	again := allowed.DeepCopy()
	again.Generation = 3
	s.replan(func(in *inputs) { in.repositories[0] = again })
	s.planned("main", "")
	s.planned("mover", v1alpha1.ReasonFolderOverlaps)
	s.cluster.put(configMap("b"), "1")
	s.mirrored()
}

// TestSuspendedDestinationKeepsWhatItHasWritten checks that a destination that is suspended excludes others only from a folder that it
// has written.
func TestSuspendedDestinationKeepsWhatItHasWritten(t *testing.T) {
	s := newFixture(t, older(func(d *v1alpha1.GitDestination) { d.Spec.BaseFolder, d.Spec.Suspend = "clusters", true }))
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.planned("mover", v1alpha1.ReasonFolderOverlaps)
	s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Suspend = true })
	s.move(func(d *v1alpha1.GitDestination) { d.Spec.Suspend = false })
	s.planned("mover", v1alpha1.ReasonFolderOverlaps)
	s.restart(true)
	if problem := s.destination("mover").plan.Load().problem; problem.Code != v1alpha1.ReasonFolderOverlaps {
		t.Errorf("after a restart: %+v", problem)
	}
}

// TestPrecedenceOfClaims has two destinations of different GitRepoConfigs in one folder.
func TestPrecedenceOfClaims(t *testing.T) {
	claim := func(state v1alpha1.ClaimState, since int64) func(*v1alpha1.GitDestination) {
		return func(d *v1alpha1.GitDestination) {
			p := &destinationPlan{object: d, branch: branchKey{url: "https://git.example.com/shop.git", branch: "main"}}
			claim := p.newClaim(metav1.NewTime(time.Unix(since, 0)))
			claim.State = state
			d.Status.Claim = &claim
		}
	}
	elsewhere := func(d *v1alpha1.GitDestination) { d.Status.Claim.Repository = "another" }
	suspended := func(d *v1alpha1.GitDestination) { d.Spec.Suspend = true }
	type changes = []func(*v1alpha1.GitDestination)
	for name, tt := range map[string]struct {
		first, second changes
		refused       []string
	}{
		"both new":           {nil, nil, nil},
		"one has reached it": {nil, changes{claim(v1alpha1.ClaimReached, 2000)}, []string{"first"}},
		"both have reached it": {
			changes{claim(v1alpha1.ClaimReached, 3000)}, changes{claim(v1alpha1.ClaimReached, 2000)}, []string{"first"},
		},
		"one has written it": {
			changes{claim(v1alpha1.ClaimReached, 1000)}, changes{claim(v1alpha1.ClaimWritten, 2000)}, []string{"first"},
		},
		"suspended, has reached it": {changes{claim(v1alpha1.ClaimReached, 1000), suspended}, nil, nil},
		"suspended, has written it": {changes{claim(v1alpha1.ClaimWritten, 1000), suspended}, nil, []string{"second"}},
		"one has written another": {
			changes{claim(v1alpha1.ClaimWritten, 1000), elsewhere}, changes{claim(v1alpha1.ClaimReached, 2000)}, []string{"first"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := world()
			other := in.repositories[0].DeepCopy()
			other.Name, other.Spec.RepoURL = "other", "https://GIT.example.com/shop"
			in.repositories = append(in.repositories, other)
			in.destinations = []*v1alpha1.GitDestination{
				newTestDestination("shop", "first", "clusters/a"), newTestDestination("shop", "second", "clusters/a"),
			}
			in.destinations[1].CreationTimestamp = metav1.NewTime(time.Unix(2000, 0))
			in.destinations[1].Spec.RepoRef.Name = "other"
			for _, change := range tt.first {
				change(in.destinations[0])
			}
			for _, change := range tt.second {
				change(in.destinations[1])
			}
			var refused []string
			for key, d := range newPlan(in).destinations {
				if d.problem.Code == v1alpha1.ReasonFolderOverlaps {
					refused = append(refused, key.Name)
				}
			}
			if !slices.Equal(refused, tt.refused) {
				t.Errorf("refused = %q, want %q", refused, tt.refused)
			}
		})
	}
}

// TestNewClaimsAreLast checks that destinations that move come after all others, whatever the clock says, and keep their order if the URL
// of their repository changes.
func TestNewClaimsAreLast(t *testing.T) {
	in := world()
	in.now = time.Unix(500, 0) // before the creation of all
	younger := newTestDestination("shop", "younger", "clusters/a")
	younger.CreationTimestamp = metav1.NewTime(time.Unix(2000, 0))
	in.destinations = append(in.destinations, younger)
	in.claims = claimsOf(newPlan(in))
	in.claims[in.destinations[0].UID].Folder = "before"
	first := func(when, want string) {
		t.Helper()
		p := newPlan(in)
		in.claims = claimsOf(p)
		for key, d := range p.destinations {
			if d.problem.IsZero() != (key.Name == want) {
				t.Errorf("%s: %s: %+v, claim %+v", when, key, d.problem, d.claim)
			}
		}
	}
	first("moved", "younger")
	first("again", "younger")
	in.repositories[0].Spec.RepoURL = "https://git.example.com/new.git"
	first("another URL", "younger")
	in.repositories[0].Spec.AllowedBranches = nil
	in.claims = claimsOf(newPlan(in))
	in.repositories[0].Spec.AllowedBranches = []string{"main"}
	first("after a problem of both", "younger")
	if err := errors.Join(checkSeconds(in.claims)...); err != nil {
		t.Error(err)
	}
}

func claimsOf(p *plan) map[types.UID]*v1alpha1.FolderClaim {
	claims := map[types.UID]*v1alpha1.FolderClaim{}
	for _, d := range p.destinations {
		claims[d.object.UID] = &d.claim
	}
	return claims
}

// checkSeconds returns errors for times that the API does not keep.
func checkSeconds(claims map[types.UID]*v1alpha1.FolderClaim) (errs []error) {
	for uid, claim := range claims {
		if !claim.Since.Time.Equal(claim.Since.Truncate(time.Second)) {
			errs = append(errs, fmt.Errorf("%s: %s has a part of a second", uid, claim.Since))
		}
	}
	return errs
}
