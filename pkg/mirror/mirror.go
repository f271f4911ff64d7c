// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/controller/events"
	"github.com/configbutler/slipstream/pkg/generated/informers/externalversions"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/internal/fairshare"
	"github.com/configbutler/slipstream/pkg/mirror/internal/gittoken"
	"github.com/configbutler/slipstream/pkg/mirror/internal/keyring"
	"github.com/configbutler/slipstream/pkg/mirror/internal/proposal"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
)

// mirror writes the objects that rules select to branches, for one term of leadership.
type mirror struct {
	config       Config
	shared       *controller.Shared
	informers    externalversions.SharedInformerFactory
	streams      *watch.Streams
	repositories *repositories
	checks       *checks
	repairs      *repairs
	encryption   *encryption
	router       *router
	services     *branchServices
	watches      *watchStates
	registry     *registry
	planner      *planner
	publisher    *publisher
	announcer    *events.Announcer

	// replan requests a new plan, publish an update of statuses.
	replan, publish chan struct{}
}

// Controller writes the objects that rules select to the branches of their GitDestinations.
type Controller struct {
	Config Config
}

var _ controller.Controller = &Controller{}

// controllerName is the name of the controller in logs and metrics.
const controllerName = "mirror"

// Name is "mirror".
func (c *Controller) Name() string { return controllerName }

// Setup implements controller.Controller.
func (c *Controller) Setup(_ context.Context, shared *controller.Shared) (controller.Run, error) {
	m, err := newMirror(c.Config, shared)
	if err != nil {
		return nil, err
	}
	return m.run, nil
}

// NewLeasing returns a Config.Leasing for the cluster of config. Every branch that is written has a Lease: the API server's priority
// and fairness limits their rate, because a limit of the client would delay the branches.
func NewLeasing(cluster *rest.Config) (coordinationv1.LeasesGetter, error) {
	unlimited := rest.AddUserAgent(rest.CopyConfig(cluster), "branch-leases")
	unlimited.QPS = -1
	client, err := coordinationv1.NewForConfig(unlimited)
	if err != nil {
		return nil, fmt.Errorf("make a client for the Leases of branches: %w", err)
	}
	return client, nil
}

// newMirror returns a mirror. It does nothing until run is called.
func newMirror(config Config, shared *controller.Shared) (*mirror, error) {
	cluster := shared.Cluster.Kubernetes
	m := &mirror{
		config: config, shared: shared, informers: shared.Informers, announcer: events.New(shared.Events, troublesOf),
		repositories: &repositories{
			cluster: cluster, network: config.Network, allowInsecure: config.AllowInsecure, now: time.Now,
			tokens: gittoken.New(config.Network, time.Now), azure: config.Azure,
			limits: gitrepo.Limits{Memory: config.Limits.RemoteMemory, Time: remotePatience, Large: fairshare.New(largeOperations)},
		},
		watches: newWatchStates(), router: &router{namespaces: shared.Namespaces.Get, authors: newAuthors(config)},
		replan: make(chan struct{}, 1), publish: make(chan struct{}, 1),
	}
	m.registry = newRegistry(m.router, m.replan, m.publish)
	m.router.limit, m.router.refused = backlogLimit{rows: maxBacklogRows, bytes: maxBacklogBytes}, m.registry.refused
	m.router.event, m.router.marks = m.event, marking{config.Hash}
	m.router.bypasses = newBypasses(func(object *unstructured.Unstructured, message string) {
		m.shared.Events.Event(object, corev1.EventTypeWarning, reasonBypass, message)
	})
	m.checks = newChecks(shared, m.announcer, m.repositories, m.registry)
	shared.Cleanup(m.checks.queue.ShutDown)
	m.repairs = &repairs{failing: m.checks.failing, version: secretVersions(shared.Cluster.Metadata), retry: m.checks.retry}
	m.encryption = newEncryption(keyring.New(cluster.CoreV1(), config.Identity.Namespace), func() { signal(m.replan) })
	objects := watch.Labelled(watch.Objects(shared.Cluster.Dynamic), manifest.NotClusterGenerated)
	m.streams = watch.NewStreams(controllerName, objects, m.watchHandler())
	m.services = m.newServices(watch.NewLister(objects))
	m.registry.services = m.services
	m.planner = &planner{
		shared: shared, informers: m.informers, policy: config.Policy, encryption: m.encryption, registry: m.registry,
		permissions: newPermissions(shared.Access, (&Resolver{Policy: config.Policy}).Of),
		streams:     m.streams, watches: m.watches, replan: m.replan, publish: m.publish,
	}
	m.publisher = &publisher{
		shared: shared, informers: m.informers, announcer: m.announcer, authors: m.router.authors, watches: m.watches, registry: m.registry,
		publish: m.publish, inForce: m.planner.inForce.Load, written: map[types.UID]v1alpha1.GitDestinationRecord{},
	}
	return m, m.listen()
}

// newServices returns the dependencies of workers.
func (m *mirror) newServices(lister lister) *branchServices {
	config := m.config
	return &branchServices{
		pushes: &pushLog{table: m.shared.Store.Table("pushes")}, history: config.History, lister: lister,
		memory: memory{config.Files}, marks: marking{config.Hash},
		identity: config.Identity, limits: config.Limits, namespaces: m.shared.Namespaces.Get,
		proposals: &proposal.Log{Table: m.shared.Store.Table("proposals")}, host: m.host, proposalInterval: proposalInterval, hostPatience: hostPatience,
		remote: m.remote, signer: m.repositories.signer, running: m.watches.running, starting: m.watches.starting, event: m.event,
		changed: func() { signal(m.publish) }, recheck: m.checks.queue.Add,
		names: m.registry.names, unserved: m.registry.unserved, claimed: m.registry.claimed, author: m.router.authors.joiner.Find,
		leases: func(key branchKey) *branchLease {
			return newBranchLease(config.Leasing, config.Identity.Installation, config.Leases, key)
		},
		slots: newSlots(config.Limits.Workers, config.Limits.WorkersPerRepository), retry: retryMin, pollInterval: pollInterval,
	}
}

// listen adds event handlers that request a new plan when one of its inputs changes.
func (m *mirror) listen() error {
	api := m.informers.Configbutler().V1alpha1()
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { signal(m.replan) },
		DeleteFunc: func(object any) {
			m.announcer.Forget(object)
			signal(m.replan)
		},
		UpdateFunc: func(before, after any) {
			if specChanged(before, after) || newlyRequested(before, after) {
				signal(m.replan)
			}
		},
	}
	for _, informer := range []cache.SharedIndexInformer{
		api.GitRepoConfigs().Informer(), api.GitDestinations().Informer(), api.WatchRules().Informer(), api.ClusterWatchRules().Informer(),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("add event handler: %w", err)
		}
	}
	if err := m.checks.follow(api.GitRepoConfigs().Informer()); err != nil {
		return err
	}
	m.shared.Cleanup(m.shared.Types.Subscribe(func(*watch.Snapshot) { signal(m.replan) }))
	m.shared.Namespaces.Subscribe(m.registry.namespaceChanged)
	return nil
}

// specChanged reports whether an update changes more than the status.
func specChanged(before, after any) bool {
	a, okA := before.(metav1.Object)
	b, okB := after.(metav1.Object)
	return !okA || !okB || a.GetGeneration() != b.GetGeneration() || a.GetUID() != b.GetUID()
}

// run runs the controller until ctx ends.
func (m *mirror) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var group wait.Group
	defer func() {
		cancel()
		m.checks.queue.ShutDown()
		group.Wait()
	}()
	if err := m.prepare(ctx); err != nil {
		return err
	}
	m.router.authors.joiner.Start(ctx, &group)
	group.StartWithContext(ctx, func(ctx context.Context) { m.services.outbox.Run(ctx, m.outboxEvents()) })
	group.StartWithContext(ctx, m.streams.Run)
	group.StartWithContext(ctx, m.checks.run)
	group.StartWithContext(ctx, m.repairs.run)
	group.StartWithContext(ctx, m.encryption.run)
	group.StartWithContext(ctx, m.publisher.run)
	group.StartWithContext(ctx, m.measureUntil)
	group.StartWithContext(ctx, m.receiveDeposits)
	group.StartWithContext(ctx, m.planner.recheckUntil)
	m.planner.planUntil(ctx, &group)
	return nil
}

// prepare reads the state of the previous process and the UID of the cluster. It must complete before the first plan.
func (m *mirror) prepare(ctx context.Context) error {
	if err := m.recover(ctx); err != nil {
		return err
	}
	if err := m.readRecords(ctx); err != nil {
		return err
	}
	return m.readClusterUID()
}

// readClusterUID reads the UID of the cluster from the cache of namespaces, which is filled. An error ends the term, which is tried again.
func (m *mirror) readClusterUID() error {
	system, ok := m.shared.Namespaces.Get(metav1.NamespaceSystem)
	if !ok {
		return fmt.Errorf("the cluster has no namespace %s, whose UID identifies it; create the namespace", metav1.NamespaceSystem)
	}
	m.services.identity.ClusterUID = string(system.UID)
	return nil
}

// recover reads the pushes and the outbox rows of the previous process.
func (m *mirror) recover(ctx context.Context) error {
	last, err := m.services.pushes.last(ctx)
	if err != nil {
		return err
	}
	rows, err := outbox.Open(ctx, m.shared.Store.Table("outbox"), last, func(row outbox.Row) {
		m.registry.recover(row)
	})
	m.services.outbox, m.router.outbox = rows, rows
	return err
}

// readRecords reads the records that the previous process wrote.
func (m *mirror) readRecords(ctx context.Context) error {
	list, err := m.shared.Client.ConfigbutlerV1alpha1().GitDestinationStatuses(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read the GitDestinationStatuses: %w", err)
	}
	m.registry.setRecords(list.Items)
	return nil
}

// remote returns the remote of a branch with the current credentials.
func (m *mirror) remote(ctx context.Context, key branchKey) (*gitrepo.Remote, error) {
	config, err := m.informers.Configbutler().V1alpha1().GitRepoConfigs().Lister().GitRepoConfigs(key.repository.Namespace).
		Get(key.repository.Name)
	if err != nil {
		return nil, fmt.Errorf("read GitRepoConfig %s: %w", key.repository, err)
	}
	return m.repositories.remote(ctx, config)
}

// event records an Event of a destination.
func (m *mirror) event(destination *v1alpha1.GitDestination, eventType, reason, message string) {
	m.shared.Events.Event(destination, eventType, reason, message)
}

// outboxEvents returns the callbacks of the outbox.
func (m *mirror) outboxEvents() outbox.Events {
	return outbox.Events{
		Durable:  func(row outbox.Row) { m.registry.updateRow(row, func(d *destination) { d.queue.Durable(row) }) },
		TooLarge: func(row outbox.Row) { m.registry.updateRow(row, func(d *destination) { d.compareInstead(row) }) },
		Blocked: func(err error) {
			m.publisher.blocked.Store(&err)
			outboxBlocked.Set(oneIf(err != nil))
			signal(m.publish)
		},
	}
}
