// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/mirrortest"
	"github.com/configbutler/slipstream/test/people"
)

// withdrawn has somebody lose the right to read what their pipeline tells of, and get it back.
func (s *stage) withdrawn(t *testing.T) {
	c := s.newScene(t, "withdrawn")
	dave := s.person(t, "dave")
	rights := people.Everywhere("readers", dave.Name) + people.Everywhere("slipstream-admin", dave.Name)
	s.Apply(t, rights)
	r := receive(t, whisperer)
	c.define(t, widgets)
	mirrortest.Eventually(t, "dave may have a pipeline", func(ctx context.Context) error {
		_, err := c.apply(ctx, dave, prompt, noDefinitions, sinks(r.sink("index")))
		return err
	})
	c.create(t, "first")
	r.hears(t, "+first")

	s.Run(t, "delete", "clusterrolebinding", "dave-readers")
	s.restart(t, syscall.SIGTERM, func() {}) // What is known of rights is kept for some minutes, and asked for anew by a new process.
	c.create(t, "second")
	p := c.becomes(t, "says what is not allowed any more", func(p *v1alpha1.SyncPipeline) error {
		return conditionIs(p, v1alpha1.ConditionReady, "False", v1alpha1.ReasonPermissionLost)
	})
	if p.Status.EditedBy == nil || p.Status.EditedBy.Username != dave.Name {
		t.Errorf("it is by %+v", p.Status.EditedBy)
	}
	c.warned(t, `user "dave" may not list widgets.withdrawn.example.com in the whole cluster`)
	c.remove(t, "first")
	if calls := r.rest(); len(calls) > 0 {
		t.Errorf("without the right, it tells %q", story(t, calls))
	}

	s.Apply(t, rights)
	s.restart(t, syscall.SIGTERM, func() {})
	c.hearsBoth(t, r, "+second", "-first")
	c.Ready(t, "pipe/"+c.name)
}

// warned waits for a warning about the pipeline.
func (c *scene) warned(t *testing.T, message string) {
	t.Helper()
	c.heard(t, message, "type=Warning")
}

// heard waits for an Event about the pipeline, as a type, a reason and a message.
func (c *scene) heard(t *testing.T, message string, selectors ...string) {
	t.Helper()
	selectors = append(selectors, "involvedObject.kind=SyncPipeline", "involvedObject.name="+c.name)
	mirrortest.Eventually(t, "an Event: "+message, func(ctx context.Context) error {
		out, err := c.Administrator.Run(ctx, "get", "events", "-A", "--field-selector="+strings.Join(selectors, ","),
			"-o", `jsonpath={range .items[*]}{.type} {.reason} {.message}{"\n"}{end}`)
		if err == nil && !strings.Contains(out, message) {
			err = fmt.Errorf("there are %q", out)
		}
		return err
	})
}

// hearsBoth waits until the receiver has been told these, in any order, and nothing else.
func (c *scene) hearsBoth(t *testing.T, r *receiver, want ...string) {
	t.Helper()
	var got []string
	mirrortest.Eventually(t, fmt.Sprintf("%s is told %q", r.format, want), func(context.Context) error {
		if got = append(got, story(t, r.rest())...); len(got) < len(want) {
			return fmt.Errorf("it was told %q", got)
		}
		return nil
	})
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("it was told %q, want %q", got, want)
	}
}

// governed stops all pipelines, and lets them go on.
func (s *stage) governed(t *testing.T) {
	c := s.newScene(t, "governed")
	defer s.govern(t)
	r := receive(t, whisperer)
	c.define(t, widgets)
	c.listens(t, prompt, noDefinitions, sinks(r.sink("index")))
	for _, name := range []string{"first", "second"} {
		c.create(t, name)
		r.hears(t, "+"+name)
	}
	s.govern(t, "suspend: {pipelines: true}")
	held := func(p *v1alpha1.SyncPipeline) error {
		return conditionIs(p, v1alpha1.ConditionReady, "False", v1alpha1.ReasonPipelinesSuspended)
	}
	c.becomes(t, "is held", held)
	c.says(t, "Held: ")
	c.remove(t, "first")
	c.create(t, "third")
	s.restart(t, syscall.SIGTERM, func() {})
	c.becomes(t, "is held still", held)
	if calls := r.rest(); len(calls) > 0 {
		t.Errorf("it tells %q", story(t, calls))
	}
	s.govern(t, "suspend: {pipelines: false}")
	c.hearsBoth(t, r, "+third", "-first")
}

// restarted ends the server in both ways, and has things go and come before it starts again.
func (s *stage) restarted(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		a := s.newAudience(t, "restarted-"+fmt.Sprint(int(signal)))
		a.define(t, widgets)
		a.listens(t, patient, a.everybody())
		a.create(t, "stays")
		a.create(t, "goes")
		a.waits(t, 3*3)
		a.synced(t, all)
		for format, r := range a.receivers {
			if len(r.Known()) != 3 {
				t.Errorf("%s knows %q", format, r.Known())
			}
			r.rest()
		}
		s.restart(t, signal, func() { a.remove(t, "goes") })
		a.synced(t, all)
		a.expect(t, restartedGone, nil, "")
		s.restart(t, signal, func() {
			a.Run(t, append([]string{"delete", "--wait"}, a.definitions(widgets)...)...)
		})
		mirrortest.Eventually(t, "everything goes", func(context.Context) error {
			a.synced(t, all)
			for format, r := range a.receivers {
				if known := r.Known(); len(known) > 0 {
					return fmt.Errorf("%s knows %q", format, known)
				}
			}
			return nil
		})
		for format, r := range a.receivers {
			if calls := r.rest(); len(calls) != 2 {
				t.Errorf("%s was told that in %d calls", format, len(calls))
			}
		}
	}
}

// restartedGone is told of the widget that goes.
var restartedGone = wanted{
	whisperer: strings.ReplaceAll(instanceGone[whisperer], "first", "goes"),
	dotAI:     strings.ReplaceAll(instanceGone[dotAI], "first", "goes"),
	events:    strings.ReplaceAll(instanceGone[events], "first", "goes"),
}

const (
	// definitions are more than a call of ClusterWhisperer may have, which is scanLimit.
	definitions, scanLimit = 250, 200
)

// crowded installs many definitions at once, and leaves them out later. To remove them takes kube-apiserver minutes.
func (s *stage) crowded(t *testing.T) {
	c := s.newScene(t, "crowded")
	r := receive(t, whisperer)
	lines := []string{"debounce: 10m\n  batch: {maxItems: 1000, maxWait: 5m}", noInstances, sinks(r.sink("index"))}
	c.listens(t, lines...)
	var manifests strings.Builder
	for i := range definitions {
		manifests.WriteString(c.manifest(fmt.Sprintf("w%ds", i), "one of many"))
	}
	if _, err := s.admin.Kubectl.Feed(t.Context(), manifests.String(), "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	c.waits(t, definitions)
	c.synced(t, all)
	c.scanned(t, r, definitions, 0)
	c.listens(t, append(lines, "customResourceDefinitions: {include: [none."+c.group+"]}")...)
	c.synced(t, all)
	c.scanned(t, r, 0, definitions)
	if known := r.Known(); len(known) > 0 {
		t.Errorf("it knows %d", len(known))
	}
}

// scanned expects calls that name so many definitions, as many at a time as may be.
func (c *scene) scanned(t *testing.T, r *receiver, upserts, deletes int) {
	t.Helper()
	var sizes []int
	gotUpserts, gotDeletes := 0, 0
	for _, call := range r.rest() {
		said := changes(t, call)
		sizes = append(sizes, len(said.Upserts)+len(said.Deletes))
		gotUpserts, gotDeletes = gotUpserts+len(said.Upserts), gotDeletes+len(said.Deletes)
	}
	if !slices.Equal(sizes, []int{scanLimit, definitions - scanLimit}) || gotUpserts != upserts || gotDeletes != deletes {
		t.Errorf("calls of %v names tell of %d and of %d that are gone, want %d and %d", sizes, gotUpserts, gotDeletes, upserts, deletes)
	}
}

// forEach does something with each of so many objects, several at once.
func forEach(t *testing.T, count int, do func(ctx context.Context, number int) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(writers)
	for number := range count {
		group.Go(func() error { return do(ctx, number) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func (c *scene) deleteConfigMaps(t *testing.T, from, count int) {
	t.Helper()
	forEach(t, count, func(ctx context.Context, number int) error {
		return c.admin.Client.CoreV1().ConfigMaps(c.name).Delete(ctx, many(from+number), metav1.DeleteOptions{})
	})
}
