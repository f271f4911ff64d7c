// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"slices"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// TestCrashBetweenWrites crashes the process at each of its writes in turn, and starts it again.
func TestCrashBetweenWrites(t *testing.T) {
	for name, test := range map[string]crashTest{
		"a batch": {change: changeBoth, want: "shop 2 AutoApplied Changed api Removed worker (2)", revision: 2, writes: 6},
		"a batch after which an old revision is deleted": {
			before: func(s *fixture) {
				s.edit("shop", "eve", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.HistoryLimit = new(int32(1)) })
				s.waitForRevision("shop", 1)
			},
			change: changeBoth, want: "shop 2 AutoApplied Changed api Removed worker (2)", revision: 2, writes: 7,
		},
		"a preview": {
			before: func(s *fixture) {
				s.edit("shop", "eve", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.PreviewOnly = true })
				s.waitForRevision("shop", 1)
			},
			change: changeBoth, want: "shop 0 AutoApplied preview Changed api Removed worker (2)", revision: 1, writes: 4,
		},
		"an edit": {
			change: func(s *fixture) {
				s.edit("shop", "adam", func(catalog *v1alpha1.AppCatalog) {
					catalog.Spec.Workloads = catalog.Spec.Workloads[:1]
					catalog.Spec.Patches = []v1alpha1.Patch{patchOf("api", imagePatch)}
				})
			},
			want: "shop 2 Applied by adam Changed api Removed worker (2)", revision: 2, writes: 6,
		},
		"a rollback": {
			before: func(s *fixture) {
				s.put("api", "shop/api:2")
				s.waitForRevision("shop", 2)
				s.edit("shop", "eve", func(catalog *v1alpha1.AppCatalog) { catalog.Spec.HistoryLimit = new(int32(2)) })
			},
			change: func(s *fixture) { s.edit("shop", "adam", pin(1)) },
			past:   "shop 2 AutoApplied Changed api (1)",
			want:   "shop 3 Applied by adam Changed api (1)", revision: 3, writes: 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for write := range test.writes {
				test.run(t, write+1)
			}
		})
	}
}

// crashTest is a change that is made while no process runs, and the record that the next one writes.
type crashTest struct {
	before, change func(*fixture)
	// past is the record before the change, empty if there is only the first.
	past, want string
	revision   int64
	// writes is the minimum number of writes, including the end of the batch.
	writes int
}

func changeBoth(s *fixture) {
	s.put("api", "shop/api:2")
	s.remove("worker")
}

// run crashes a process at a write, and starts another one.
func (test crashTest) run(t *testing.T, last int) {
	t.Helper()
	s := runningFixture(t)
	if test.before != nil {
		test.before(s)
	}
	s.stepWindow()
	s.stop()
	test.change(s)
	want := []string{firstRecord, test.want}
	if test.past != "" {
		want = slices.Insert(want, 1, test.past)
	}
	ended := s.start(last)
	s.eventually(fmt.Sprintf("the process crashes at write %d", last), func() error {
		select {
		case <-ended:
			return nil
		default:
			return fmt.Errorf("records: %q", s.recordLines())
		}
	})
	s.stop()
	s.start(0)
	s.eventually(fmt.Sprintf("the changes are recorded after a crash at write %d", last), func() error {
		if got := s.recordLines(); !slices.Equal(got, want) || s.catalog("shop").Status.Revision != test.revision {
			return fmt.Errorf("records: %q", got)
		}
		return nil
	})
	s.stepWindow()
	s.expectRecords(want...)
	if revision := s.catalog("shop").Status.Revision; revision != test.revision {
		t.Errorf("crashed at write %d: revision %d", last, revision)
	}
}
