// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/test/testkit"
)

// seedVariable is the environment variable with the seed of TestAnythingAtAnyTime, phasesVariable that with the number of its phases.
const (
	seedVariable   = "MIRROR_TEST_SEED"
	phasesVariable = "MIRROR_TEST_PHASES"
)

// chaos injects random changes and faults into a fixture.
type chaos struct {
	*fixture
	random *rand.Rand
	other  *otherWriter
	edits  int
}

// TestAnythingAtAnyTime injects random faults concurrently with changes. After each phase, when the faults have ended, every folder must
// have exactly what its rules select. In every other phase the process is not restarted, so that no restart repairs what was lost.
func TestAnythingAtAnyTime(t *testing.T) {
	seed, phases := uint64(time.Now().UnixNano()), 4
	if text := os.Getenv(seedVariable); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	if text := os.Getenv(phasesVariable); text != "" {
		phases, _ = strconv.Atoi(text)
	}
	t.Logf("%s=%d", seedVariable, seed)
	c := &chaos{random: newRandom(seed)}
	c.fixture = newFixture(t, onBranch("b", "main", "b"), onBranch("c", "third", "c"), byClusterRule, func(s *fixture) {
		s.pollInterval = 200 * time.Millisecond
		s.backlog.rows = 50 // so few that faults reach the limit
	})
	c.cluster.put(configMap("first"), "1")
	c.mirrored()
	c.other = c.otherWriter()
	for phase := range phases {
		calm := c.changing(newRandom(seed + uint64(phase)))
		for range 20 {
			c.trouble(phase%2 == 1)
			c.pause()
		}
		calm()
		c.calm()
		c.verify()
	}
	c.restart()
	tip := c.mustRun("rev-parse", "main", "third")
	c.idle()
	if again := c.mustRun("rev-parse", "main", "third"); again != tip {
		t.Errorf("commits after a restart:\n%s", c.mustRun("log", "--stat", "-3", "main", "third"))
	}
}

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// changing changes objects until it is stopped.
func (c *chaos) changing(random *rand.Rand) (stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			c.change(random)
			select {
			case <-time.After(time.Duration(random.IntN(3)) * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// verify waits until every folder has what its rules select.
func (c *chaos) verify() {
	c.t.Helper()
	for range 2 { // and still has when nothing is pending any more
		for _, d := range c.in.destinations {
			c.holds(d.Spec.Branch, d.Spec.BaseFolder, c.selects(d))
		}
		c.idle()
	}
	for _, d := range c.in.destinations {
		testkit.Eventually(c.t, "the record of "+d.Name, func() error {
			c.planIfRequested()
			r := c.record(d.Name)
			if r.PendingChanges != 0 || r.OldestPendingTime != nil || r.Files != r.Objects || int(r.Files) != len(c.cluster.rendered(c.selects(d))) {
				return fmt.Errorf("%+v", r)
			}
			return nil
		})
	}
}

// planIfRequested applies a new plan if one was requested, as the planner does. A backlog may reach its limit after the last fault, when the
// store accepts many changes at once, and only a plan removes its rows.
func (c *chaos) planIfRequested() {
	select {
	case <-c.mirror.replan:
		c.plan()
	default:
	}
}

// selects returns a filter for the objects of a destination. The caller holds the lock of the cluster.
func (c *chaos) selects(d *v1alpha1.GitDestination) func(outbox.Object) bool {
	labelled := c.in.rules
	return func(o outbox.Object) bool {
		if o.GroupVersionResource() != configMaps {
			return false
		}
		if d.Name == "main" {
			return c.cluster.namespaces[o.Namespace].Labels["team"] == "shop"
		}
		i := slices.IndexFunc(labelled, func(r *v1alpha1.WatchRule) bool { return r.Spec.DestinationRef.Name == d.Name })
		if i < 0 || o.Namespace != "shop" {
			return false
		}
		return labelled[i].Spec.ObjectSelector == nil || c.cluster.objects[o].GetLabels()["x"] == "y"
	}
}

// change changes an object.
func (c *chaos) change(random *rand.Rand) {
	o := configMap(fmt.Sprint(random.IntN(12)))
	o.Namespace = []string{"shop", "shop", "dev"}[random.IntN(3)]
	if random.IntN(4) == 0 {
		c.cluster.remove(o)
		return
	}
	mark := map[string]string{"x": []string{"y", "z"}[random.IntN(2)]}
	c.cluster.put(o, fmt.Sprint(random.IntN(3)), func(object *unstructured.Unstructured) { object.SetLabels(mark) })
}

// trouble injects one fault.
func (c *chaos) trouble(deadly bool) {
	things := []func(){
		func() { c.git.guard(down) },
		func() { c.git.guard(nil) },
		func() { c.git.guard(nil) },
		func() {
			c.git.guard(func(w http.ResponseWriter, _ *http.Request) bool {
				http.Error(w, "no", http.StatusForbidden)
				return false
			})
		},
		func() { c.git.loseResponses.Store(1) },
		func() { c.kv.fail(bolt.ErrDiskFull) },
		func() { c.kv.fail(nil) },
		func() { c.kv.fail(nil) },
		func() { c.cluster.setRefused(configMaps, errors.New("no")) },
		func() { c.cluster.setRefused(configMaps, nil) },
		func() { c.cluster.unfollow(); c.plan() },
		c.slowList, c.editRule, c.relabelSomething, c.editDestination, c.foreignEdit, c.rewrite, c.hurry,
	}
	if deadly {
		things = append(things, c.restart, c.die)
	}
	things[c.random.IntN(len(things))]()
}

// pause waits a random time.
func (c *chaos) pause() {
	select {
	case <-time.After(time.Duration(c.random.IntN(40)) * time.Millisecond):
	case <-c.t.Context().Done():
	}
}

// slowList has the next list be outdated when it is returned.
func (c *chaos) slowList() {
	wait := time.Duration(c.random.IntN(30)) * time.Millisecond
	c.cluster.afterList(func() { <-time.After(wait) })
	c.cluster.unfollow()
	c.plan()
}

func (c *chaos) restart() {
	c.stop()
	c.start()
}

func (c *chaos) die() {
	moments := []string{"put outbox", "put pushes", "push", "delete outbox"}
	moment := []string{"before ", "after "}[c.random.IntN(2)] + moments[c.random.IntN(len(moments))]
	died := c.process.killAt(moment, 1+c.random.IntN(3))
	select {
	case <-died:
	case <-time.After(100 * time.Millisecond):
	}
	c.restart()
}

func (c *chaos) editRule() {
	i := c.random.IntN(len(c.in.rules))
	rule := c.in.rules[i].DeepCopy()
	if rule.Spec.ObjectSelector == nil {
		rule.Spec.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"x": "y"}}
	} else {
		rule.Spec.ObjectSelector = nil
	}
	c.replan(func(in *inputs) { in.rules = slices.Replace(slices.Clone(in.rules), i, i+1, rule) })
}

func (c *chaos) relabelSomething() {
	name := []string{"shop", "dev"}[c.random.IntN(2)]
	team := []string{"shop", "dev"}[c.random.IntN(2)]
	c.relabel(watch.Namespace{Name: name, Labels: labels.Set{"team": team}})
}

func (c *chaos) editDestination() {
	i := c.random.IntN(len(c.in.destinations))
	d := c.in.destinations[i].DeepCopy()
	switch c.random.IntN(4) {
	case 0:
		d.Spec.Suspend = !d.Spec.Suspend
	case 1:
		d.UID = types.UID(fmt.Sprint(d.Name, c.random.IntN(1000)))
	case 2:
		d.Spec.BaseFolder = fmt.Sprint(d.Name, c.random.IntN(2))
	case 3:
		d.Spec.Branch = []string{"main", "third"}[c.random.IntN(2)]
	}
	c.replan(func(in *inputs) { in.destinations = slices.Replace(slices.Clone(in.destinations), i, i+1, d) })
}

// foreignEdit edits a file as another writer, unless the mirror overtakes every attempt: changes do not end before this returns, and on
// a busy machine the other writer may be slower every time.
func (c *chaos) foreignEdit() {
	c.edits++
	folder := c.in.destinations[c.random.IntN(len(c.in.destinations))].Spec.BaseFolder
	path := fmt.Sprintf("%s/core/v1/configmaps/shop/%d.yaml", folder, c.random.IntN(15))
	for range 10 {
		pushed, err := c.other.tryEdit("foreign", c.other.write(path, fmt.Sprint("foreign ", c.edits)))
		if err != nil {
			c.t.Error(err)
		}
		if pushed || err != nil {
			return
		}
	}
}

// rewrite removes the last commit from the branch.
func (c *chaos) rewrite() {
	if before, err := c.run("rev-parse", "--verify", "--quiet", "main^"); err == nil {
		c.mustRun("update-ref", "refs/heads/main", before)
	}
}

// calm ends all faults, resumes all destinations, and ends all backoffs.
func (c *chaos) calm() {
	c.git.guard(nil)
	c.git.loseResponses.Store(0)
	c.kv.fail(nil)
	c.cluster.setRefused(configMaps, nil)
	c.replan(func(in *inputs) {
		in.destinations = slices.Clone(in.destinations)
		for i := range in.destinations {
			in.destinations[i] = in.destinations[i].DeepCopy()
			in.destinations[i].Spec.Suspend = false
		}
	})
	c.hurry()
}

// hurry ends all backoffs, because the repositories are ready and lists succeed.
func (c *chaos) hurry() {
	c.registry.retryBranches(types.NamespacedName{Namespace: "shop", Name: "repo"})
	for _, d := range c.registry.all() {
		d.seeds.mu.Lock()
		for _, state := range d.seeds.types {
			state.notBefore = time.Time{}
		}
		d.seeds.mu.Unlock()
	}
}
