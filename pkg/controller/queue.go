// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// A key whose reconcile function fails is retried after minRetry. The delay doubles with each failure, up to maxRetry.
const (
	minRetry = 500 * time.Millisecond
	maxRetry = time.Minute
)

// Reconcile brings what key names to its desired state. If again is not zero, it is called once more at that time. An error makes the
// queue call it again after a growing delay.
type Reconcile[K comparable] func(ctx context.Context, key K) (again time.Time, err error)

// Queue calls a Reconcile for each key that is added, one at a time for each key. Keys that are added while they wait are reconciled
// once. It must be shut down also if it is never run.
type Queue[K comparable] struct {
	clock clock.WithTicker
	keys  workqueue.TypedRateLimitingInterface[K]
}

// NewQueue returns an empty queue. The name is the label of its metrics.
func NewQueue[K comparable](name string, clock clock.WithTicker) *Queue[K] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[K](minRetry, maxRetry)
	return &Queue[K]{clock: clock, keys: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[K]{Name: name, Clock: idleClock{clock}})}
}

// idleClock limits how often an idle queue wakes up. A queue updates its metrics of unfinished work twice a second: for six queues, that
// was every sixth wakeup of an idle server, in an execution trace.
type idleClock struct{ clock.WithTicker }

// metricsInterval is how often a queue updates its metrics of unfinished work. Prometheus usually reads them every 15 to 60 seconds.
const metricsInterval = 10 * time.Second

func (c idleClock) NewTicker(interval time.Duration) clock.Ticker {
	return c.WithTicker.NewTicker(max(interval, metricsInterval))
}

// Add enqueues a key.
func (q *Queue[K]) Add(key K) { q.keys.Add(key) }

// AddAfter enqueues a key after a delay.
func (q *Queue[K]) AddAfter(key K, delay time.Duration) { q.keys.AddAfter(key, delay) }

// NumRequeues returns how many times in a row the reconcile function has failed for a key.
func (q *Queue[K]) NumRequeues(key K) int { return q.keys.NumRequeues(key) }

// ShutDown ends Run and makes the queue ignore keys that are added from now on.
func (q *Queue[K]) ShutDown() { q.keys.ShutDown() }

// Run reconciles keys with a number of workers until ctx is done. Then it shuts the queue down, drops the keys that wait, and returns when
// all workers have returned.
func (q *Queue[K]) Run(ctx context.Context, workers int, reconcile Reconcile[K]) {
	var group wait.Group
	defer group.Wait()
	for range workers {
		group.StartWithContext(ctx, func(ctx context.Context) {
			for q.next(ctx, reconcile) {
			}
		})
	}
	<-ctx.Done()
	q.ShutDown()
}

// next reconciles one key. It returns false once the queue is shut down and empty.
func (q *Queue[K]) next(ctx context.Context, reconcile Reconcile[K]) bool {
	key, shutdown := q.keys.Get()
	if shutdown {
		return false
	}
	defer q.keys.Done(key)
	if ctx.Err() != nil {
		return true // A queue returns its keys also after it is shut down. Its depth is a metric, which must become zero.
	}
	again, err := reconcile(ctx, key)
	switch {
	case ctx.Err() != nil:
	case err == nil:
		q.keys.Forget(key)
		if !again.IsZero() {
			q.keys.AddAfter(key, max(again.Sub(q.clock.Now()), time.Millisecond))
		}
	default:
		// A conflict is not a failure: another client has written the object first.
		if failure := utilerrors.FilterOut(err, apierrors.IsConflict); failure != nil {
			klog.FromContext(ctx).Error(failure, "Failed to reconcile, will retry", "key", key)
		}
		q.keys.AddRateLimited(key)
	}
	return true
}
