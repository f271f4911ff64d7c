// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	kubewatch "github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/test/testkit"
)

// whileComparing calls change in the next list, after it was read and before it is returned.
func (s *fixture) whileComparing(change func()) {
	s.cluster.afterList(change)
}

// compareAgain requests a comparison, like the restart of a watch.
func (s *fixture) compareAgain() {
	handler := s.watchHandler()
	handler.Listed(s.ctx, kubewatch.Watch{Resource: configMaps, Namespace: "shop"}, "")
}

// TestChangesWhileTheClusterIsCompared checks that an event during a comparison is not dropped because it equals the branch, which the
// comparison is about to change.
func TestChangesWhileTheClusterIsCompared(t *testing.T) {
	for name, tc := range map[string]struct {
		before, unread, during func(*cluster)
	}{
		"back to what the branch has": {
			before: func(c *cluster) { c.put(configMap("a"), "1") },
			unread: func(c *cluster) { c.put(configMap("a"), "2") },
			during: func(c *cluster) { c.put(configMap("a"), "1") },
		},
		"deleted, as in the branch": {
			before: func(*cluster) {},
			unread: func(c *cluster) { c.put(configMap("a"), "1") },
			during: func(c *cluster) { c.remove(configMap("a")) },
		},
		"created again, as in the branch": {
			before: func(c *cluster) { c.put(configMap("a"), "1") },
			unread: func(c *cluster) { c.remove(configMap("a")) },
			during: func(c *cluster) { c.put(configMap("a"), "1") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			tc.before(s.cluster)
			s.mirrored()
			s.idle()
			s.stop()
			tc.unread(s.cluster)
			s.whileComparing(func() { tc.during(s.cluster) })
			s.start()
			s.mirrored()
			s.idle()
			s.mirrored()
		})
	}
}

// TestRowSupersededByAComparison checks that an event with the content of a pending row is not dropped if a comparison of a later state has
// superseded the row.
func TestRowSupersededByAComparison(t *testing.T) {
	s := newFixture(t)
	s.cluster.put(configMap("a"), "0")
	s.mirrored()
	s.idle()
	d, watch := s.destination("main"), kubewatch.Watch{Resource: configMaps, Namespace: "shop"}
	// A row for "1" is enqueued after the rows were pushed and before the list is read. The watch is cut, so that it does not deliver "2".
	s.cluster.beforeList(func() {
		s.cluster.put(configMap("a"), "1")
		testkit.Eventually(t, "the row", func() error {
			if d.queue.Backlog().Rows == 0 {
				return errors.New("no row")
			}
			return nil
		})
		s.cluster.unfollow()
		s.cluster.put(configMap("a"), "2")
	})
	// "1" is restored after the comparison and before the row is removed.
	var again atomic.Bool
	s.onChange(func() {
		if !d.seeds.comparing(configMaps) && d.queue.Backlog().Rows > 0 && again.CompareAndSwap(false, true) {
			s.cluster.put(configMap("a"), "1")
			s.watchHandler().Changed(s.ctx, watch, kubewatch.Change{Operation: kubewatch.Update, Object: s.cluster.get(configMap("a"))})
		}
	})
	s.compareAgain()
	testkit.Eventually(t, "the second row", func() error {
		if !again.Load() {
			return errors.New("comparison has not ended")
		}
		return nil
	})
	s.mirrored()
}

// TestChangeThatWasNotAccepted checks that a change that the outbox did not accept does not count as pending.
func TestChangeThatWasNotAccepted(t *testing.T) {
	s := newFixture(t)
	s.idle() // The comparison at the start does not write "1", but its event has a row.
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.idle()
	s.kv.fail(errors.New("no"))
	const accepted = 1024                 // changes that the outbox accepts before one is durable
	for i := range uint64(2 * accepted) { // the watch ends while a change waits for the outbox
		s.cluster.put(configMap("a"), fmt.Sprint("x", i))
	}
	testkit.Eventually(t, "a change that waits for the outbox", func() error {
		const first = 2 // The row of "1" was the first of all.
		if change, _ := s.destination("main").queue.Pending("core/v1/configmaps/shop/a.yaml"); change.Sequence != first+accepted {
			return fmt.Errorf("the last change is %d", change.Sequence)
		}
		return nil
	})
	s.cluster.unfollow()
	s.kv.fail(nil)
	s.plan()
	s.mirrored()
	testkit.Eventually(t, "no pending change", func() error { // The intake is written, and its changes are superseded.
		if change, ok := s.destination("main").queue.Pending("core/v1/configmaps/shop/a.yaml"); ok {
			return fmt.Errorf("change %d is pending", change.Sequence)
		}
		return nil
	})
}

func TestTypeThatCannotBeListedDeletesNothing(t *testing.T) {
	s := newFixture(t)
	s.cluster.put(configMap("a"), "1")
	s.cluster.put(configMap("b"), "1")
	s.mirrored()
	s.idle()
	s.stop()
	s.cluster.setRefused(configMaps, errors.New("forbidden by a policy"))
	s.cluster.remove(configMap("b"))
	s.start()
	testkit.Eventually(t, "the reason", func() error {
		if watches := s.record("main").Watches; len(watches) != 1 || !strings.Contains(watches[0].Message, "forbidden by a policy") {
			return fmt.Errorf("watches = %+v", watches)
		}
		return nil
	})
	if files, err := s.files("main"); err != nil || len(files) != 2 {
		t.Errorf("files = %v, error %v", files, err)
	}
	s.cluster.setRefused(configMaps, nil)
	s.mirrored()
}

// TestObjectThatCannotBeRendered checks that a comparison keeps the file of an object that exists but has a value that YAML cannot
// represent, and removes that of a deleted object.
func TestObjectThatCannotBeRendered(t *testing.T) {
	s := newFixture(t)
	for _, name := range []string{"a", "b"} {
		s.cluster.put(configMap(name), "1")
	}
	s.mirrored()
	s.idle()
	s.cluster.mu.Lock()
	s.cluster.objects[configMap("a")].Object["data"] = map[string]any{"value": "\xff"}
	delete(s.cluster.objects, configMap("b")) // without an event
	s.cluster.mu.Unlock()
	s.compareAgain()
	s.holds("main", "clusters/a", func(o outbox.Object) bool { return o.Name == "a" })
	s.idle()
	s.holds("main", "clusters/a", func(o outbox.Object) bool { return o.Name == "a" })
}

// TestTypesOfFailedDiscovery checks that files of a group are kept while its discovery fails, and removed once it succeeds without
// the types.
func TestTypesOfFailedDiscovery(t *testing.T) {
	s := newFixture(t)
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.idle()
	other := s.otherWriter()
	if err := other.edit("leftover", other.write("clusters/a/example.com/v1/widgets/shop/w.yaml", "x")); err != nil {
		t.Fatal(err)
	}
	s.stop()
	var uncertain atomic.Bool
	uncertain.Store(true)
	s.in.uncertain = func(group string) bool { return group == "example.com" && uncertain.Load() }
	s.start()
	s.cluster.put(configMap("b"), "1")
	s.mirroredOne(configMap("b"))
	s.idle()
	if files, _ := s.files("main"); len(files) != 3 {
		t.Errorf("files = %v", files)
	}
	uncertain.Store(false)
	s.plan()
	s.mirrored()
}

// TestWatchesStartWhileComparisonsAreChosen looks for deadlocks between comparisons and watches of many types and namespaces.
func TestWatchesStartWhileComparisonsAreChosen(t *testing.T) {
	s := newFixture(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 200 {
				s.compareAgain()
			}
		})
	}
	group.Wait()
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.idle()
}

// TestRowsThatAnEarlierProcessRemoves removes rows, as the previous leader may, while the next one reads them.
func TestRowsThatAnEarlierProcessRemoves(t *testing.T) {
	s := newFixture(t)
	s.cluster.put(configMap("a"), "1")
	s.mirrored()
	s.idle()
	s.git.guard(down)
	s.cluster.put(configMap("b"), "1")
	testkit.Eventually(t, "a row", func() error {
		if s.record("main").PendingChanges == 0 {
			return errors.New("none")
		}
		return nil
	})
	if err := s.services.outbox.RemoveAll(t.Context(), "shop-main"); err != nil {
		t.Fatal(err)
	}
	s.git.guard(nil)
	s.idle()
	s.cluster.put(configMap("b"), "2")
	s.mirrored()
}
