// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"net/netip"

	"github.com/configbutler/slipstream/pkg/environment/syncer"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/access/egress"
	"github.com/configbutler/slipstream/pkg/apiserver"
	"github.com/configbutler/slipstream/pkg/catalog"
	slipcontroller "github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/pkg/mirror"
	"github.com/configbutler/slipstream/pkg/store/commitindex"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/pkg/syncstatus/retention"
)

// controllers is what the controllers of the loop are made of.
type controllers struct {
	opts    *options.Options
	cluster *rest.Config
	server  *apiserver.Server
	store   *table.Store
	reports *reports
	runner  *syncer.Syncer
	// resolver says which types rules and pipelines select.
	resolver access.Resolver
}

// all are the controllers of this process, whose identity tells it from every other that may lead.
func (c *controllers) all(identity string) ([]slipcontroller.Runner, error) {
	landings := commitindex.New(c.store.Table(commitindex.TableName), clock.RealClock{}, commitindex.DefaultCapacity)
	deposits := mirror.NewDeposits()
	mirror, err := c.mirror(identity, landings, deposits)
	if err != nil {
		return nil, err
	}
	catalog, err := c.catalog(landings)
	if err != nil {
		return nil, err
	}
	environment, err := c.environments()
	if err != nil {
		return nil, err
	}
	pipeline, err := c.pipelines()
	if err != nil {
		return nil, err
	}
	retention, err := c.retention(deposits)
	return []slipcontroller.Runner{mirror, catalog, environment, pipeline, retention}, err
}

// slipstream is how a controller reaches the objects of this server.
func (c *controllers) slipstream(controller string) (versioned.Interface, error) {
	return newLoopbackClient(c.server.Generic.LoopbackClientConfig, controller)
}

// mirrorName is what the mirror calls itself in commits.
const mirrorName = "slipstream"

// mirror writes what rules select to Git, and tells in which commits. It takes deposits.
func (c *controllers) mirror(identity string, landings *commitindex.Log, deposits *mirror.Deposits) (*mirror.Controller, error) {
	slipstream, err := c.slipstream("mirror")
	if err != nil {
		return nil, err
	}
	policy, err := c.egress()
	if err != nil {
		return nil, err
	}
	opts := c.opts
	return &mirror.Controller{Config: mirror.Config{
		Slipstream: slipstream, Cluster: c.cluster, Store: c.store, Records: c.server.Records,
		Identity: mirror.Identity{
			Namespace: opts.Namespace, Name: mirrorName, Instance: identity,
			Installation: opts.LeaderElection.ResourceNamespace + "/" + opts.LeaderElection.ResourceName,
		},
		Limits: opts.Mirror.Limits(), Leases: opts.Mirror.Leases(opts.Namespace), Policy: opts.Mirror.Policy(), DiscoveryRefresh: opts.Mirror.DiscoveryRefresh,
		AllowInsecure: opts.Git.AllowInsecure, Dial: policy.DialContext, Landings: landings, Deposits: deposits,
		Facts: c.reports.log, Hash: c.reports.hash, AttributionMaxWait: opts.Attribution.MaxWait, AuditExpected: opts.Attribution.AuditClientCAFile != "",
	}}, nil
}

// egress says where users can have the server connect to.
func (c *controllers) egress() (*egress.Policy, error) {
	policy, err := egress.NewPolicy(c.opts.Git.AllowDestinations, addressesOf(c.cluster)...)
	if err != nil {
		return nil, fmt.Errorf("--allow-destinations: %w", err)
	}
	return policy, nil
}

// addressesOf returns the address of the API server that config leads to, if it has one; a name is not resolved,
// since it would mean another address tomorrow.
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

// catalog follows the sources of catalogs.
func (c *controllers) catalog(landings *commitindex.Log) (*catalog.Controller, error) {
	slipstream, err := c.slipstream("catalog")
	if err != nil {
		return nil, err
	}
	return &catalog.Controller{Config: catalog.Config{
		Slipstream: slipstream, Cluster: c.cluster, Store: c.store, Records: c.server.Records, DiscoveryRefresh: c.opts.Mirror.DiscoveryRefresh,
		Namespace: c.opts.Namespace, Facts: c.reports.log, Hash: c.reports.hash, AttributionMaxWait: c.opts.Attribution.MaxWait,
		Landings: landings,
	}}, nil
}

// retention removes records whose time is over, which Git may have to have before.
func (c *controllers) retention(git retention.Git) (*retention.Sweeper, error) {
	slipstream, err := c.slipstream("retention")
	if err != nil {
		return nil, err
	}
	return retention.New(retention.Config{
		Client: slipstream, Folder: c.opts.Storage.ArchiveFolder(), Git: git, Table: c.store.Table(retention.TableName),
		Period: retention.DefaultPeriod, Clock: clock.RealClock{},
	}), nil
}
