// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// TestRandomChanges changes objects, syncs environments, starts and ends runs, and restarts processes at random. In the end the open record
// of each environment must list exactly the objects that differ from its copies.
func TestRandomChanges(t *testing.T) {
	for range 4 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			s := begunFixture(t)
			for range 60 {
				s.happen(random)
				if random.IntN(6) == 0 {
					s.windowPasses()
				}
			}
			for _, environment := range []string{"alice", "bob"} {
				s.end(environment)
			}
			s.eventually("the records say what differs", s.checkRecords)
			s.windowPasses()
			if err := s.checkRecords(); err != nil {
				t.Error(err)
			}
		})
	}
}

// namesOf returns the names of the copies of an environment.
func namesOf(environment string) []string {
	if environment == "bob" {
		return []string{"settings", "queue"}
	}
	return []string{"settings", "queue", "secret-database", "service-web", "account-web"}
}

// happen makes a random change.
func (s *fixture) happen(random *rand.Rand) {
	s.Helper()
	all := append(namesOf("alice"), "other")
	name, environment := all[random.IntN(len(all))], []string{"alice", "bob"}[random.IntN(2)]
	switch random.IntN(12) {
	case 0:
		if s.hash(name) != "" {
			s.remove(name)
		}
	case 1:
		s.restart()
	case 2:
		s.stop()
		s.put(name, fmt.Sprint(random.IntN(3)))
		s.start(0)
	case 3:
		s.sync(environment, namesOf(environment)...)
	case 4:
		s.moves(environment, v1alpha1.SyncStateInProgress, func(from v1alpha1.SyncState) bool { return from == v1alpha1.SyncStatePending })
	case 5:
		s.end(environment)
	default:
		s.put(name, fmt.Sprint(random.IntN(3)))
	}
}

// end completes the runs of an environment with the current objects of the source.
func (s *fixture) end(environment string) {
	s.Helper()
	for _, record := range s.syncStatuses() {
		if record.Spec.Subject.Name != environment || record.Status.State != v1alpha1.SyncStateInProgress {
			continue
		}
		s.sync(environment, namesOf(environment)...)
		record.Status.State = v1alpha1.SyncStateCompleted
		s.api.Put(record)
		s.change(environment, func(e *v1alpha1.Environment) {
			if e.Status.LatestDependencySync == record.Name {
				e.Status.LatestDependencySync = ""
			}
		})
	}
}

// checkRecords returns an error if the open records do not list exactly the differences.
func (s *fixture) checkRecords() error {
	s.Helper()
	for _, environment := range []string{"alice", "bob"} {
		var named, open []string
		for _, record := range s.syncStatuses() {
			if record.Spec.Subject.Name != environment || record.Status.State != v1alpha1.SyncStatePending {
				continue
			}
			open = append(open, record.Name)
			for _, summary := range record.Status.ResourceSummaries {
				named = append(named, summary.Name)
			}
		}
		slices.Sort(named)
		differing, latest := s.differing(environment), s.environment(environment).Status.LatestDependencySync
		if !slices.Equal(named, differing) || len(open) > 1 || strings.Join(open, " ") != latest {
			return fmt.Errorf("environment %s: %q differ, %q are in the open records %q, status names %q:\n%s",
				environment, differing, named, open, latest, strings.Join(s.recordLines(), "\n"))
		}
	}
	return nil
}
