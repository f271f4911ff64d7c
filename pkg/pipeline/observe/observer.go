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

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/pipeline/ledger"
)

const (
	// lists is the number of concurrent lists.
	lists = 4
	// retryPause is the time after which a list that a caller of List requested, and that has failed, is repeated.
	retryPause = time.Second
)

// errUnknownTypes is returned until discovery has succeeded.
var errUnknownTypes = errors.New("the types that the cluster serves are not known yet")

// Observer reports the objects of the cluster to the Targets of pipelines.
type Observer struct {
	config Config
	// sources are the readers of definitions and instances.
	sources map[item.Kind]*source
	// queue has the types for which a list may be requested.
	queue *controller.Queue[feedID]
	// replan triggers a new plan of the watched types.
	replan chan struct{}

	// planning is held while the plan changes.
	planning *semaphore.Weighted

	mu        sync.Mutex
	pipelines map[types.UID]*pipeline
	feeds     map[feedID]*feed
	watches   map[feedID]watchState
}

// source reads definitions or instances.
type source struct {
	streams *watch.Streams
	lister  *watch.Lister
}

// pipeline is a pipeline that is observed.
type pipeline struct {
	// types are those from which selection selects, nil while they are unknown.
	types       *watch.Snapshot
	selection   Selection
	target      Target
	subscribers map[feedID]*subscriber
}

// New returns an Observer. It does nothing until Run is called. ShutDown must be called even if Run never is.
func New(config Config) *Observer {
	if config.Changed == nil {
		config.Changed = func() {}
	}
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	o := &Observer{
		config: config, replan: make(chan struct{}, 1), planning: semaphore.NewWeighted(1),
		pipelines: map[types.UID]*pipeline{}, feeds: map[feedID]*feed{}, watches: map[feedID]watchState{},
	}
	o.sources = map[item.Kind]*source{
		item.CustomResourceDefinition: o.newSource(item.CustomResourceDefinition, config.Definitions),
		item.Instance:                 o.newSource(item.Instance, config.Instances),
	}
	o.queue = controller.NewQueue[feedID]("pipeline-lists", config.Clock)
	return o
}

// ShutDown releases the goroutines of an Observer. Run does so when it returns.
func (o *Observer) ShutDown() { o.queue.ShutDown() }

func (o *Observer) newSource(kind item.Kind, reader watch.Reader) *source {
	return &source{streams: watch.NewStreams("pipeline", reader, watchHandler{o, kind}), lister: watch.NewLister(reader)}
}

// Run observes until ctx ends. It must be called once. No Target is called after it has returned.
func (o *Observer) Run(ctx context.Context) {
	var group wait.Group
	defer group.Wait()
	for _, s := range o.sources {
		group.StartWithContext(ctx, s.streams.Run)
	}
	group.StartWithContext(ctx, func(ctx context.Context) {
		o.queue.Run(ctx, lists, func(ctx context.Context, id feedID) (again time.Time, err error) { return again, o.list(ctx, id, nil) })
	})
	o.planSoon()
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.replan:
			// It fails only when ctx has ended.
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

// Set starts to report what a pipeline selects of types to a target, or changes the selection or the types: the caller has checked that the
// pipeline may have these, and calls Set again when others are served. types is nil while they are unknown, and nothing is reported. A
// different target (compared with ==) replaces the previous one, which is not called any more, and gets everything by lists. Set blocks
// until Run was called. After an error, which is that of ctx or that Run has ended, it is undefined whether the change takes effect.
func (o *Observer) Set(ctx context.Context, uid types.UID, types *watch.Snapshot, selection Selection, target Target) error {
	return o.arrange(ctx, func() {
		p, ok := o.pipelines[uid]
		if !ok || p.target != target {
			p = &pipeline{target: target, subscribers: map[feedID]*subscriber{}}
			o.pipelines[uid] = p
		}
		p.types, p.selection = types, selection
	})
}

// Unset ends the observation of a pipeline. The target is not called any more once it has returned without an error, which is only that of
// ctx.
func (o *Observer) Unset(ctx context.Context, uid types.UID) error {
	err := o.arrange(ctx, func() { delete(o.pipelines, uid) })
	if errors.Is(err, watch.ErrStopped) {
		return nil
	}
	return err
}

// List lists everything that a pipeline selects, or only some kinds, and returns when the target has received it. A type that cannot be
// listed does not block the others, and is retried.
func (o *Observer) List(ctx context.Context, uid types.UID, urgency ledger.Urgency, kinds ...item.Kind) error {
	subscribers, err := o.request(uid, urgency, kinds)
	if err != nil {
		return err
	}
	failures := make([]error, len(subscribers))
	workqueue.ParallelizeUntil(ctx, lists, len(subscribers), func(i int) {
		if failures[i] = o.list(ctx, subscribers[i].feed.id, subscribers[i]); failures[i] != nil {
			o.queue.AddAfter(subscribers[i].feed.id, retryPause)
		}
	})
	return errors.Join(errors.Join(failures...), ctx.Err())
}

// request requests lists of the types that a pipeline selects.
func (o *Observer) request(uid types.UID, urgency ledger.Urgency, kinds []item.Kind) ([]*subscriber, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p, ok := o.pipelines[uid]
	if !ok {
		return nil, fmt.Errorf("list what pipeline %s selects: it is not observed", uid)
	}
	if p.types == nil {
		return nil, errUnknownTypes
	}
	var subscribers []*subscriber
	for id, t := range p.subscribers {
		if len(kinds) == 0 || slices.Contains(kinds, id.kind) {
			t.request(urgency)
			subscribers = append(subscribers, t)
		}
	}
	return subscribers, nil
}

// change modifies the state under the lock, and then calls Config.Changed.
func (o *Observer) change(change func()) {
	o.mu.Lock()
	change()
	o.mu.Unlock()
	o.config.Changed()
}
