// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/apiserver"
	"github.com/configbutler/slipstream/pkg/apiserver/admission/callerrights"
	"github.com/configbutler/slipstream/pkg/egress"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	"github.com/configbutler/slipstream/pkg/loop"
	"github.com/configbutler/slipstream/pkg/mirror"
	"github.com/configbutler/slipstream/pkg/workstore"
)

// assemble makes the server with its loop, on open stores. ctx must outlive the server.
func assemble(
	ctx context.Context, opts *options.Options, config *apiserver.Config, stores *stores,
) (*apiserver.Server, error) {
	keeper, err := openSealing(ctx, opts, stores, &config.Generic.Config)
	if err != nil {
		return nil, err
	}
	if err := stores.applyTo(ctx, opts.Storage, &config.Generic.Config); err != nil {
		return nil, err
	}
	rules := &resolver{policy: opts.Mirror.Policy()}
	err = opts.ApplyTo(config, func(generic *genericapiserver.RecommendedConfig) (admission.PluginInitializer, error) {
		references, err := newReferences(generic.LoopbackClientConfig)
		if err != nil {
			return nil, err
		}
		rules.catalogue, err = newCatalogue(generic.ClientConfig, opts.Mirror.DiscoveryRefresh)
		return callerrights.NewInitializer(rules, references), err
	})
	if err != nil {
		return nil, err
	}
	store := stores.workStore(ctx, opts.Storage, keeper.Sealer)
	reports, err := newReports(ctx, opts.Attribution, config, store)
	if err != nil {
		return nil, err
	}
	server, err := config.Complete().New()
	if err != nil {
		return nil, err
	}
	server.AddOutlasting(reports.run)
	// Every replica follows the types, because every replica admits rules.
	if err := server.AddBackground("follow-resource-types", rules.catalogue.Run); err != nil {
		return nil, err
	}
	lease, err := newLease(opts, config.Generic.ClientConfig, stores.identity)
	if err != nil {
		return nil, err
	}
	runner, err := newMirror(opts, config, server, store, reports, stores.identity)
	if err != nil {
		return nil, err
	}
	controllers, err := loop.New(lease, runner, keeper)
	if err != nil {
		return nil, err
	}
	return server, server.AddLoop(controllers)
}

// mirrorName is what the mirror calls itself in commits.
const mirrorName = "slipstream"

// newMirror is the mirror of the cluster that config leads to.
func newMirror(
	opts *options.Options, config *apiserver.Config, server *apiserver.Server, store *workstore.Store, reports *reports, instance string,
) (*mirror.Controller, error) {
	loopback := rest.CopyConfig(server.Generic.LoopbackClientConfig)
	loopback.QPS = -1 // the server protects itself
	slipstream, err := versioned.NewForConfig(rest.AddUserAgent(loopback, "mirror"))
	if err != nil {
		return nil, fmt.Errorf("making a client for the mirror: %w", err)
	}
	policy, err := egress.NewPolicy(opts.Git.AllowDestinations, addressesOf(config.Generic.ClientConfig)...)
	if err != nil {
		return nil, fmt.Errorf("--allow-destinations: %w", err)
	}
	return &mirror.Controller{Config: mirror.Config{
		Slipstream: slipstream, Cluster: config.Generic.ClientConfig, Store: store, Records: server.Records,
		Identity: mirror.Identity{
			Namespace: opts.Namespace, Name: mirrorName, Instance: instance,
			Installation: opts.LeaderElection.ResourceNamespace + "/" + opts.LeaderElection.ResourceName,
		},
		Limits: opts.Mirror.Limits(), Leases: opts.Mirror.Leases(opts.Namespace), Policy: opts.Mirror.Policy(), DiscoveryRefresh: opts.Mirror.DiscoveryRefresh,
		AllowInsecure: opts.Git.AllowInsecure, Dial: policy.DialContext,
		Facts: reports.log, Hash: reports.hash, AttributionMaxWait: opts.Attribution.MaxWait, AuditExpected: opts.Attribution.AuditClientCAFile != "",
	}}, nil
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

// newLease is the Lease of opts in the cluster that config leads to.
func newLease(opts *options.Options, config *rest.Config, identity string) (loop.Lease, error) {
	election := opts.LeaderElection
	if !election.LeaderElect {
		return loop.Lease{}, nil
	}
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(rest.CopyConfig(config), "leader-election"))
	if err != nil {
		return loop.Lease{}, fmt.Errorf("making a client for the leader election: %w", err)
	}
	return loop.Lease{
		NewLock: func() resourcelock.Interface {
			return &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: election.ResourceNamespace, Name: election.ResourceName},
				Client:     client.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
			}
		},
		Duration:      election.LeaseDuration.Duration,
		RenewDeadline: election.RenewDeadline.Duration,
		RetryPeriod:   election.RetryPeriod.Duration,
	}, nil
}
