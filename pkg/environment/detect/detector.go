// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package detect

import (
	"context"
	"fmt"
	"time"

	"github.com/configbutler/slipstream/pkg/environment/syncer"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/attribution/watched"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	typed "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

const (
	// TableName is that of the table of the work store that has what waits to be recorded.
	TableName = "dependency-intake"
	// controllerName is what metrics call the changes that are detected here.
	controllerName = "dependency"
	// workers is how many namespaces are recorded at once.
	workers = 4
	// What fails is tried again after retryMin, doubling up to retryMax.
	retryMin = 500 * time.Millisecond
	retryMax = time.Minute
)

// Records writes the records that the API lets nobody write.
type Records interface {
	Write(ctx context.Context, record runtime.Object) error
}

// Authors finds out who made the changes that watches tell of.
type Authors interface {
	// Start has group do what there is to do until ctx ends, and returns when it knows what is known already.
	Start(ctx context.Context, group *wait.Group)
	// Listed says that a watch starts, or starts again.
	Listed(resource schema.GroupVersionResource, namespace string)
	// Observe takes note of an event that nobody asks about.
	Observe(event attribution.Event)
	// Submit calls deliver with the author of an event.
	Submit(ctx context.Context, event attribution.Event, deliver func(context.Context, attribution.Author)) error
	// FindSince returns the author of what a comparison has found that was another at a time.
	FindSince(event attribution.Event, since time.Time) attribution.Author
	// WaitingIn says whether an event of an object of the namespace has not been delivered yet.
	WaitingIn(namespace string) bool
}

var _ Authors = &attribution.Joiner{}

// Runner plans syncs, and records what environments have copies of.
type Runner interface {
	Run(ctx context.Context, request syncer.Request) (syncer.Result, error)
	Record(ctx context.Context, environment *v1alpha1.Environment, records []v1alpha1.EnvironmentDependencyRecord) error
}

var _ Runner = &syncer.Syncer{}

// Config is what a Detector needs. All fields are required unless their comment says otherwise.
type Config struct {
	// Slipstream reaches the objects of this server.
	Slipstream typed.ConfigbutlerV1alpha1Interface
	// Source reads and watches the sources, with the server's own rights.
	Source dynamic.Interface
	// Mapper finds the types of the sources.
	Mapper watch.KindMapper
	// Store keeps what must outlive the process.
	Store *table.Store
	// Records writes SyncStatuses and EnvironmentDependencies.
	Records Records
	// Index, Hasher and Runner are those that carry out syncs.
	Index  *index.Index
	Hasher plan.Hasher
	Runner Runner
	// Sources returns the environments that hold a revision of their catalog, by the namespaces of their sources.
	Sources func() map[string][]types.NamespacedName
	// Changed hears of environments of whose sources something has changed that they have copies of, or that is about workloads. It
	// must not block.
	Changed func(environments ...types.NamespacedName)
	// Policy returns the settings that all environments share, with their defaults.
	Policy func() v1alpha1.SyncPolicySpec
	// Clock says when windows end; nil: the real one.
	Clock clock.WithTicker
	// Authors find out who makes changes; nil: those that Facts tell of.
	Authors Authors
	// Facts are the reports of who made changes; nil: only what managedFields say is known.
	Facts attribution.Facts
	// Hash is the keyed hash of canonical content that facts have; nil: they have none.
	Hash func([]byte) string
	// AttributionMaxWait (--attribution-max-wait, 2 s) is the longest that a change waits for facts.
	AttributionMaxWait time.Duration
	// Capacity is how many changed objects can wait to be recorded; 0: intake.DefaultCapacity.
	Capacity int
}

// Detector detects changes for one term of leadership. When it begins to, the index says what all EnvironmentDependencies do.
type Detector struct {
	config  Config
	authors Authors
	watched watched.Objects
	streams *watch.Streams
	intake  *pending.Intake
	sights  *sights
	reader  *reader
	keeper  *keeper
	touched *touched
	// companions are what is about workloads, whether there is a copy of it or not.
	companions *companions
	// queue has the namespaces of sources that are to be looked at.
	queue workqueue.TypedRateLimitingInterface[string]
	// replan asks for another look at what is to be watched, lookAgain for one at what is due.
	replan, lookAgain chan struct{}
}

// New returns a detector that does nothing before Run.
func New(config Config) *Detector {
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	d := &Detector{
		config: config, authors: config.Authors, sights: newSights(config.Index), touched: newTouched(),
		companions: newCompanions(config.Hasher), replan: make(chan struct{}, 1), lookAgain: make(chan struct{}, 1),
	}
	if d.authors == nil {
		d.authors = attribution.NewJoiner(attribution.Config{
			Controller: controllerName, MaxWait: config.AttributionMaxWait, Facts: config.Facts, Wanted: d.watched.Has,
		})
	}
	objects := watch.Objects(config.Source)
	d.reader = &reader{client: config.Source, lister: watch.NewLister(objects), hasher: config.Hasher, index: config.Index}
	d.keeper = newKeeper(config, d.authors)
	d.streams = watch.NewStreams(controllerName, objects, (*watchHandler)(d))
	return d
}

// Run detects until ctx ends. It is called once, and returns an error only when it cannot start.
func (d *Detector) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var group wait.Group
	defer group.Wait()
	defer cancel()
	if err := d.open(ctx); err != nil {
		return err
	}
	defer d.queue.ShutDown()
	defer d.config.Index.Subscribe(d.indexChanged)()
	if err := d.recall(ctx); err != nil {
		return err
	}
	d.watched.Set(d.watches())
	d.authors.Start(ctx, &group)
	group.StartWithContext(ctx, func(ctx context.Context) { d.intake.Run(ctx, d.notices(ctx)) })
	group.StartWithContext(ctx, d.streams.Run)
	for range workers {
		group.StartWithContext(ctx, d.work)
	}
	d.watchUntil(ctx)
	return nil
}

// open makes what there is while Run goes on.
func (d *Detector) open(ctx context.Context) (err error) {
	d.intake, err = pending.Open(ctx, d.config.Store.Table(TableName), pending.Config{
		Clock: d.config.Clock, Capacity: d.config.Capacity, Metrics: intakeMetrics,
	})
	if err != nil {
		return fmt.Errorf("detect changes of what environments depend on: %w", err)
	}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](retryMin, retryMax)
	d.queue = workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[string]{Clock: d.config.Clock})
	return nil
}

// PolicyChanged has all namespaces looked at again: a shorter window may be over already.
func (d *Detector) PolicyChanged() { signal(d.lookAgain) }

// SourcesChanged has it found out again what is to be watched, since Sources returns something else.
func (d *Detector) SourcesChanged() { signal(d.replan) }

// signal says something that is heard once, however often it is said before.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
