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
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/attribution/watched"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/environment/detect/index"
	"github.com/configbutler/slipstream/pkg/environment/plan"
	typed "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/pkg/syncstatus/pending"
)

const (
	// TableName is the work store's table of changes that are not recorded yet.
	TableName = "dependency-intake"
	// controllerName is the name of this controller in metrics.
	controllerName = "dependency"
	// workers is the number of namespaces that are reconciled concurrently.
	workers = 4
)

// Records writes records that API clients cannot write.
type Records interface {
	Write(ctx context.Context, record runtime.Object) (runtime.Object, error)
}

// Authors finds the authors of changes that watches report.
type Authors interface {
	// Start starts background work in group and returns when the facts that are already stored have been read.
	Start(ctx context.Context, group *wait.Group)
	// Listed notes that a watch starts or restarts.
	Listed(resource schema.GroupVersionResource, namespace string)
	// Observe notes an event whose author is not needed.
	Observe(event attribution.Event)
	// Submit calls deliver with the author of an event.
	Submit(ctx context.Context, event attribution.Event, deliver func(context.Context, attribution.Author)) error
	// FindSince returns the author of a change that a comparison has found, and that happened after a time.
	FindSince(event attribution.Event, since time.Time) attribution.Author
	// AuditWait returns how long to wait until FindSince has all reports about the present state of an object.
	AuditWait(event attribution.Event) time.Duration
	// WaitingIn reports whether an event in the namespace has not been delivered yet.
	WaitingIn(namespace string) bool
}

var _ Authors = &attribution.Joiner{}

// Runner plans syncs and records which copies environments have.
type Runner interface {
	Run(ctx context.Context, request syncer.Request) (syncer.Result, error)
	Record(ctx context.Context, environment *v1alpha1.Environment, records []v1alpha1.EnvironmentDependencyRecord) error
}

var _ Runner = &syncer.Syncer{}

// Config configures a Detector. All fields are required unless their comment says otherwise.
type Config struct {
	// Slipstream is the client of this server's API.
	Slipstream typed.ConfigbutlerV1alpha1Interface
	// Source reads and watches the sources with the server's own permissions.
	Source dynamic.Interface
	// Mapper finds the resources of kinds.
	Mapper watch.KindMapper
	// Store keeps state across restarts.
	Store *table.Store
	// Records writes SyncStatuses and EnvironmentDependencies.
	Records Records
	// Index, Hasher and Runner are the ones that syncs use.
	Index  *index.Index
	Hasher plan.Hasher
	Runner Runner
	// Sources returns the environments that hold a revision of their catalog, by source namespace.
	Sources func() map[string][]types.NamespacedName
	// Changed is called with environments whose dependencies or attached objects have changed in the source. It must not
	// block.
	Changed func(environments ...types.NamespacedName)
	// Policy returns the SyncPolicy with its defaults.
	Policy func() v1alpha1.SyncPolicySpec
	// Clock determines when windows end. The default is the real clock.
	Clock clock.WithTicker
	// Authors finds the authors of changes. The default uses Facts.
	Authors Authors
	// Facts are the reports of authors. Without them, only managedFields are used.
	Facts attribution.Facts
	// Hash is the keyed hash of canonical content that facts contain. It is optional.
	Hash func([]byte) string
	// AttributionMaxWait (--attribution-max-wait, 2 s) is the longest time that a change waits for facts.
	AttributionMaxWait time.Duration
	// Capacity is the number of changed objects that can wait to be recorded. The default is pending.DefaultCapacity.
	Capacity int
}

// Detector detects changes during one leader term. When Run is called, the index must reflect all EnvironmentDependencies.
type Detector struct {
	config              Config
	authors             Authors
	watched             watched.Objects
	streams             *watch.Streams
	intake              *pending.Intake
	pendingVersions     *pendingVersions
	reader              *reader
	recorder            *recorder
	changedEnvironments *changedEnvironments
	// attached tracks the objects that may be attached to workloads, whether they have copies or not.
	attached *attachedObjects
	// queue holds the source namespaces to reconcile.
	queue *controller.Queue[string]
	// watchesChanged triggers a new computation of the watches, and policyChanged a reconciliation of all namespaces.
	watchesChanged, policyChanged chan struct{}
}

// New returns a Detector. It does nothing before Run.
func New(config Config) *Detector {
	if config.Clock == nil {
		config.Clock = clock.RealClock{}
	}
	d := &Detector{
		config: config, authors: config.Authors, pendingVersions: newPendingVersions(config.Index), changedEnvironments: newChangedEnvironments(),
		attached: newAttachedObjects(config.Hasher), watchesChanged: make(chan struct{}, 1), policyChanged: make(chan struct{}, 1),
	}
	if d.authors == nil {
		d.authors = attribution.NewJoiner(attribution.Config{
			Controller: controllerName, MaxWait: config.AttributionMaxWait, Facts: config.Facts, Wanted: d.watched.Has,
		})
	}
	objects := watch.Objects(config.Source)
	d.reader = &reader{client: config.Source, lister: watch.NewLister(objects), hasher: config.Hasher, index: config.Index}
	d.recorder = newRecorder(config, d.authors)
	d.streams = watch.NewStreams(controllerName, objects, (*watchHandler)(d))
	return d
}

// Run detects changes until ctx ends. It must be called once, and returns an error only if it cannot start.
func (d *Detector) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var group wait.Group
	defer group.Wait()
	defer cancel()
	if err := d.openIntake(ctx); err != nil {
		return err
	}
	defer d.queue.ShutDown()
	defer d.config.Index.Subscribe(d.indexChanged)()
	if err := d.loadOpenRecords(ctx); err != nil {
		return err
	}
	d.watched.Set(d.watches())
	d.authors.Start(ctx, &group)
	group.StartWithContext(ctx, func(ctx context.Context) { d.intake.Run(ctx, d.intakeCallbacks(ctx)) })
	group.StartWithContext(ctx, d.streams.Run)
	group.StartWithContext(ctx, func(ctx context.Context) { d.queue.Run(ctx, workers, d.reconcile) })
	d.runWatches(ctx)
	return nil
}

// openIntake opens the intake and the queue.
func (d *Detector) openIntake(ctx context.Context) (err error) {
	d.intake, err = pending.Open(ctx, d.config.Store.Table(TableName), pending.Config{
		Clock: d.config.Clock, Capacity: d.config.Capacity, Metrics: intakeMetrics,
	})
	if err != nil {
		return fmt.Errorf("open the intake of dependency changes: %w", err)
	}
	d.queue = controller.NewQueue[string](controllerName, d.config.Clock)
	return nil
}

// PolicyChanged reconciles all namespaces: a shorter window may be over already.
func (d *Detector) PolicyChanged() { signal(d.policyChanged) }

// SourcesChanged must be called when Sources returns something else. It updates the watches.
func (d *Detector) SourcesChanged() { signal(d.watchesChanged) }

// signal sends without blocking. Signals that are not received yet are merged.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
