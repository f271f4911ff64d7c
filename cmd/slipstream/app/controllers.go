// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/runtime/schema"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/access/egress"
	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	"github.com/configbutler/slipstream/pkg/apiserver"
	"github.com/configbutler/slipstream/pkg/catalog"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/controller/events"
	"github.com/configbutler/slipstream/pkg/environment"
	"github.com/configbutler/slipstream/pkg/environment/syncer"
	"github.com/configbutler/slipstream/pkg/history"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror"
	"github.com/configbutler/slipstream/pkg/mirror/blobcache"
	"github.com/configbutler/slipstream/pkg/mirror/past"
	"github.com/configbutler/slipstream/pkg/notification"
	"github.com/configbutler/slipstream/pkg/pipeline"
	"github.com/configbutler/slipstream/pkg/store/hmac"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/pkg/syncstatus/retention"
)

// newProcess returns what the controllers share. Events are recorded until ctx is done.
func newProcess(
	ctx context.Context, generic *genericapiserver.RecommendedConfig, clients *watch.Clients, types *watch.Types, store *table.Store,
) (*controller.Process, error) {
	client, err := newLoopbackClient(generic.LoopbackClientConfig, "controllers")
	if err != nil {
		return nil, err
	}
	reviews, err := access.NewReviewsForConfig(generic.ClientConfig, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	return &controller.Process{
		Client: client, Cluster: clients, Types: types, Access: reviews,
		Events: events.NewRecorder(ctx, clients.Kubernetes), Store: store, Clock: clock.RealClock{},
		Tracing: generic.TracerProvider,
	}, nil
}

// newSyncRunner returns the Syncer of environments. Every replica plans with it. The leader also syncs with the result of WithRecords.
func newSyncRunner(ctx context.Context, opts *options.EnvironmentOptions, process *controller.Process) (*syncer.Syncer, error) {
	hasher, err := hmac.Open(ctx, process.Store)
	if err != nil {
		return nil, err
	}
	marks, err := opts.Marks()
	if err != nil {
		return nil, err
	}
	return environment.NewRunner(environment.RunnerConfig{Hasher: hasher, Marks: marks}, process)
}

// controllers configures the controllers.
type controllers struct {
	opts    *options.Options
	cluster *rest.Config
	process *controller.Process
	reports *reports
	runner  *syncer.Syncer
	history *history.History
	files   *blobcache.Cache
	past    *past.Past
	sending notification.TesterConfig
	// resolver returns the types that rules and pipelines select.
	resolver *mirror.Resolver
	// network connects to the addresses in users' objects.
	network *proxy.Network
}

// addTo has a server run the controllers, and others, while this process leads.
func (c *controllers) addTo(server *apiserver.Server, identity string, others ...controller.Runner) error {
	lease, err := newLease(c.opts, c.cluster, identity)
	if err != nil {
		return err
	}
	all, err := c.all(identity)
	if err != nil {
		return err
	}
	manager, err := controller.NewManager(lease, append([]controller.Runner{controller.NewGroup(c.process, server.Records, all...)}, others...)...)
	if err != nil {
		return err
	}
	return server.AddManager(manager)
}

// all returns the controllers of this process. identity distinguishes it from every other process that can lead.
func (c *controllers) all(identity string) ([]controller.Controller, error) {
	deposits := mirror.NewDeposits()
	mirror, err := c.mirror(identity, deposits)
	if err != nil {
		return nil, err
	}
	sinkClient, err := pipeline.SinkClients(c.cluster)
	if err != nil {
		return nil, err
	}
	return []controller.Controller{
		mirror, &history.Controller{History: c.history}, c.catalog(), c.environment(),
		&pipeline.Controller{Config: pipeline.Config{Resolver: c.resolver.Of, Network: c.network, SinkClient: sinkClient}},
		c.notifications(), c.retention(deposits),
	}, nil
}

// mirrorName is the name of the mirror in commits.
const mirrorName = "slipstream"

// mirror writes what rules select to Git, records the changes in the history, and writes the files of deposits.
func (c *controllers) mirror(identity string, deposits *mirror.Deposits) (*mirror.Controller, error) {
	leasing, err := mirror.NewLeasing(c.cluster)
	if err != nil {
		return nil, err
	}
	opts := c.opts
	azure, err := opts.Git.Azure()
	if err != nil {
		return nil, err
	}
	return &mirror.Controller{Config: mirror.Config{
		Leasing: leasing,
		Identity: mirror.Identity{
			Namespace: opts.Namespace, Name: mirrorName, Instance: identity,
			Installation: installationOf(opts),
		},
		Limits: opts.Mirror.Limits(), Leases: opts.Mirror.Leases(opts.Namespace), Policy: opts.Mirror.Policy(),
		AllowInsecure: opts.Git.AllowInsecure, Network: c.network, Azure: azure, History: c.history, Files: c.files, Deposits: deposits,
		Facts: c.reports.log, Hash: c.reports.hash, AttributionMaxWait: opts.Attribution.MaxWait,
		AuditExpected: opts.Attribution.AuditClientCAFile != "",
	}}, nil
}

// installationOf identifies the installation within its cluster.
func installationOf(opts *options.Options) string {
	return opts.LeaderElection.ResourceNamespace + "/" + opts.LeaderElection.ResourceName
}

// newNetwork returns what connects to the addresses in users' objects.
func newNetwork(opts *options.Options, cluster *rest.Config) (*proxy.Network, error) {
	policy, err := egress.NewPolicy(opts.Git.AllowDestinations, addressesOf(cluster)...)
	if err != nil {
		return nil, fmt.Errorf("--allow-destinations: %w", err)
	}
	if !opts.Git.ProxyFromEnvironment {
		return proxy.NewNetwork(policy, nil), nil
	}
	environment, err := proxy.FromEnvironment()
	if err != nil {
		return nil, fmt.Errorf("read the proxies of the environment: %w", err)
	}
	return proxy.NewNetwork(policy, environment), nil
}

// addressesOf returns the address of the API server of config, if it is an address. A name is not resolved, because it can mean
// another address later.
func addressesOf(config *rest.Config) []netip.Addr {
	host, _, err := rest.DefaultServerURL(config.Host, config.APIPath, schema.GroupVersion{}, true)
	if err != nil {
		return nil
	}
	address, err := netip.ParseAddr(host.Hostname())
	if err != nil {
		return nil
	}
	return []netip.Addr{address}
}

// catalog keeps AppCatalogs up to date, with the commits of their changes from the history.
func (c *controllers) catalog() *catalog.Controller {
	return &catalog.Controller{Config: catalog.Config{
		Namespace: c.opts.Namespace, Facts: c.reports.log, Hash: c.reports.hash, AttributionMaxWait: c.opts.Attribution.MaxWait,
		History: c.history,
	}}
}

// environment keeps Environments up to date.
func (c *controllers) environment() *environment.Controller {
	return &environment.Controller{Config: environment.Config{
		Namespace: c.opts.Namespace, Runner: c.runner,
		Facts: c.reports.log, Hash: c.reports.hash, AttributionMaxWait: c.opts.Attribution.MaxWait,
	}}
}

// retention deletes expired SyncStatuses, after they have been archived in files or in Git.
func (c *controllers) retention(git retention.Git) *retention.Controller {
	return &retention.Controller{Config: retention.Config{
		Folder: c.opts.Storage.ArchiveFolder(), Git: git, Period: retention.DefaultPeriod,
	}}
}
