// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
)

const (
	// lists is how many lists are made at once.
	lists = 4
	// A type that could not be listed is tried again after retryMin, doubling up to retryMax.
	retryMin = time.Second
	retryMax = time.Minute
)

// errUnknownTypes is returned as long as discovery has not succeeded.
var errUnknownTypes = errors.New("the types that the cluster serves are not known yet")

// Observer tells the Targets of pipelines what there is in the cluster.
type Observer struct {
	config Config
	// sides are by what they bring.
	sides map[item.Kind]*side
	// queue has the types in which a list may be due.
	queue workqueue.TypedRateLimitingInterface[feedID]
	// replan asks for another look at which types there are.
	replan chan struct{}

	// planning is held while types come and go.
	planning turn

	mu        sync.Mutex
	pipelines map[types.UID]*pipeline
	feeds     map[feedID]*feed
	watches   map[feedID]watchState
}

// side reads definitions or instances.
type side struct {
	streams *watch.Streams
	lister  *watch.Lister
}

// pipeline is one that has been set.
type pipeline struct {
	selection Selection
	target    Target
	takers    map[feedID]*taker
}

// New returns an Observer that does nothing before Run, which has to be called.
func New(config Config) *Observer {
	if config.Changed == nil {
		config.Changed = func() {}
	}
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	o := &Observer{
		config: config, replan: make(chan struct{}, 1), planning: newTurn(),
		pipelines: map[types.UID]*pipeline{}, feeds: map[feedID]*feed{}, watches: map[feedID]watchState{},
	}
	o.sides = map[item.Kind]*side{
		item.CustomResourceDefinition: o.newSide(item.CustomResourceDefinition, config.Definitions),
		item.Instance:                 o.newSide(item.Instance, config.Instances),
	}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[feedID](retryMin, retryMax)
	o.queue = workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[feedID]{Clock: config.Clock})
	return o
}

func (o *Observer) newSide(kind item.Kind, reader watch.Reader) *side {
	return &side{streams: watch.NewStreams("pipeline", reader, watchHandler{o, kind}), lister: watch.NewLister(reader)}
}

// Run observes until ctx ends. It is called once; when it has returned, no Target is told anything.
func (o *Observer) Run(ctx context.Context) {
	var group wait.Group
	defer group.Wait()
	defer o.queue.ShutDown()
	o.config.Catalogue.Subscribe(func(*watch.Snapshot) { o.planSoon() })
	for _, s := range o.sides {
		group.StartWithContext(ctx, s.streams.Run)
	}
	for range lists {
		group.StartWithContext(ctx, o.work)
	}
	o.planSoon()
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.replan:
			// It fails when ctx has ended.
			_ = o.arrange(ctx, func() {})
		}
	}
}

func (o *Observer) planSoon() {
	select {
	case o.replan <- struct{}{}:
	default:
	}
}

// Set begins to tell a target what a pipeline selects, or goes on with another selection. Another target (they are compared with ==)
// is told everything by lists, and the one before nothing any more. Set waits for Run to be started. An error, which is that of
// ctx or that Run has ended, leaves open whether it takes effect.
func (o *Observer) Set(ctx context.Context, uid types.UID, selection Selection, target Target) error {
	return o.arrange(ctx, func() {
		p, ok := o.pipelines[uid]
		if !ok || p.target != target {
			o.pipelines[uid] = &pipeline{selection: selection, target: target, takers: map[feedID]*taker{}}
			return
		}
		p.selection = selection
	})
}

// Unset ends what Set began. The target is told nothing any more once it has returned without an error, which is only that of ctx.
func (o *Observer) Unset(ctx context.Context, uid types.UID) error {
	err := o.arrange(ctx, func() { delete(o.pipelines, uid) })
	if errors.Is(err, watch.ErrStopped) {
		return nil
	}
	return err
}

// List lists everything that a pipeline selects, of all kinds or of those given, tells its target, and returns when that is done. A
// type that cannot be listed does not keep the others from it; it is tried again later.
func (o *Observer) List(ctx context.Context, uid types.UID, how ledger.Urgency, kinds ...item.Kind) error {
	if o.config.Catalogue.Snapshot() == nil {
		return errUnknownTypes
	}
	takers, err := o.asked(uid, how, kinds)
	if err != nil {
		return err
	}
	failures := make([]error, len(takers))
	workqueue.ParallelizeUntil(ctx, lists, len(takers), func(i int) {
		if failures[i] = o.list(ctx, takers[i].feed.id, takers[i]); failures[i] != nil {
			o.queue.AddRateLimited(takers[i].feed.id)
		}
	})
	return errors.Join(errors.Join(failures...), ctx.Err())
}

// asked asks for lists of what a pipeline takes.
func (o *Observer) asked(uid types.UID, how ledger.Urgency, kinds []item.Kind) ([]*taker, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p, ok := o.pipelines[uid]
	if !ok {
		return nil, fmt.Errorf("list what pipeline %s selects: it is not observed", uid)
	}
	var takers []*taker
	for id, t := range p.takers {
		if len(kinds) == 0 || slices.Contains(kinds, id.kind) {
			t.ask(how)
			takers = append(takers, t)
		}
	}
	return takers, nil
}

// change changes what is known, and says so.
func (o *Observer) change(change func()) {
	o.mu.Lock()
	change()
	o.mu.Unlock()
	o.config.Changed()
}
