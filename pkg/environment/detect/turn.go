// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"context"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

// explainInterval is how often it is looked whether the authors of changes are known.
const explainInterval = 100 * time.Millisecond

// work looks after namespaces, one after the other, until the queue is shut down.
func (d *Detector) work(ctx context.Context) {
	for {
		namespace, shutdown := d.queue.Get()
		if shutdown {
			return
		}
		if err := d.turn(ctx, namespace); err != nil && ctx.Err() == nil {
			failures.Inc()
			klog.FromContext(ctx).Error(err, "Changes of what environments depend on cannot be recorded, trying again", "source", namespace)
			d.queue.AddRateLimited(namespace)
		} else {
			d.queue.Forget(namespace)
		}
		d.queue.Done(namespace)
	}
}

// turn records what has changed in a namespace, and takes back what does not differ any more. A batch that was recorded in part
// comes first: what its records tell of is not known of the copies before it is done.
func (d *Detector) turn(ctx context.Context, namespace string) error {
	if d.unexplained(namespace) {
		d.queue.AddAfter(namespace, explainInterval)
		return nil
	}
	if d.companions.take(namespace) {
		d.config.Changed(d.config.Sources()[namespace]...)
	}
	err := d.recordBatch(ctx, namespace)
	if err == nil {
		err = d.settle(ctx, namespace)
	}
	// What is due already, after a failure, waits as long as the namespace does.
	if due, some := d.intake.Due(namespace, d.window()); some && (due > 0 || err == nil) {
		d.queue.AddAfter(namespace, due)
	}
	return err
}

// unexplained says whether a namespace has changes whose authors are about to be known. What is read now would contain them, as
// the work of somebody else. No batch waits longer than a change does for its author.
func (d *Detector) unexplained(namespace string) bool {
	if !d.authors.WaitingIn(namespace) {
		return false
	}
	due, some := d.intake.Due(namespace, d.window()+d.config.AttributionMaxWait)
	return !some || due > 0
}

// recordBatch tells environments of the oldest batch of a namespace, if its time has come. Environments that cannot be told do not
// keep the next batch from the others: that one compares everything, and finds what they have missed.
func (d *Detector) recordBatch(ctx context.Context, namespace string) error {
	if due, some := d.intake.Due(namespace, d.window()); !some || due > 0 {
		return nil
	}
	batch, some, err := d.intake.Close(ctx, namespace)
	if err != nil || !some {
		return err
	}
	found, err := d.reader.read(ctx, batch)
	if err != nil {
		return err
	}
	failed := d.keeper.recordAll(ctx, batch, found)
	for _, f := range found {
		for _, copied := range d.config.Index.Lookup(f.of) {
			d.config.Changed(copied.Environment)
		}
	}
	if failed != nil {
		if ctx.Err() != nil || d.queue.NumRequeues(namespace) == 0 {
			return failed // What fails for the first time may well pass.
		}
		d.intake.Resync(namespace, pending.Missed)
	}
	err = d.intake.Done(ctx, batch)
	d.sights.settle(namespace)
	return utilerrors.NewAggregate([]error{failed, err})
}

// settle takes out of open records what does not differ from the copies any more.
func (d *Detector) settle(ctx context.Context, namespace string) error {
	var errs []error
	for _, environment := range d.touched.take(namespace) {
		if err := d.keeper.settle(ctx, environment); err != nil {
			d.touched.add(namespace, environment)
			errs = append(errs, err)
		}
	}
	return utilerrors.NewAggregate(errs)
}

// window is how long changes are gathered.
func (d *Detector) window() time.Duration { return d.config.Policy().BatchWindow.Duration }

// notices are what becomes of what the intake tells.
func (d *Detector) notices(ctx context.Context) pending.Notices {
	logger := klog.FromContext(ctx)
	return pending.Notices{
		Opened: d.queue.Add,
		Filling: func(changes, capacity int) {
			logger.Info("Changes of what environments depend on come faster than they are recorded", "changes", changes, "capacity", capacity)
		},
		Overflowed: func(namespace string) {
			logger.Info("A namespace is compared with the copies in environments, because too much has changed in it", "namespace", namespace)
		},
		Blocked: func(error) {}, // The intake logs it, goes on trying, and has a metric.
	}
}
