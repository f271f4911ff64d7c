// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"

	"k8s.io/apiserver/pkg/admission"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/apiserver"
	"github.com/configbutler/slipstream/pkg/apiserver/admission/callerrights"
	"github.com/configbutler/slipstream/pkg/apiserver/admission/placement"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/environment/syncer"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror"
	"github.com/configbutler/slipstream/pkg/notification"
	"github.com/configbutler/slipstream/pkg/store/unreadable"
)

// assemble returns the server with its controllers, on open stores. ctx must outlive the server.
func assemble(ctx context.Context, opts *options.Options, config *apiserver.Config, stores *stores) (*apiserver.Server, error) {
	if err := reachCluster(ctx, opts); err != nil {
		return nil, err
	}
	rotation, err := openEncryption(ctx, opts, stores, &config.Generic.Config)
	if err != nil {
		return nil, err
	}
	if err := stores.applyTo(ctx, opts.Storage, &config.Generic.Config); err != nil {
		return nil, err
	}
	monitor := stores.monitorRecords(opts.Storage, rotation, &config.Generic.Config)
	rules := &mirror.Resolver{Policy: opts.Mirror.Policy()}
	clients, err := applyOptions(ctx, opts, config, rules)
	if err != nil {
		return nil, err
	}
	certificates, err := openServing(ctx, opts, config.Generic)
	if err != nil {
		return nil, err
	}
	store := stores.workStore(ctx, opts.Storage, rotation.Encrypter)
	reports, err := newReports(ctx, opts.Attribution, config, store)
	if err != nil {
		return nil, err
	}
	changes := openHistory(ctx, opts, stores, config.Generic, store)
	files := openFiles(ctx, opts.Storage, rotation.Encrypter)
	process, err := newProcess(ctx, config.Generic, clients, rules.Types, store)
	if err != nil {
		return nil, err
	}
	runner, err := newSyncRunner(ctx, opts.Environments, process)
	if err != nil {
		return nil, err
	}
	network, err := newNetwork(opts, config.Generic.ClientConfig)
	if err != nil {
		return nil, err
	}
	past, err := newPast(opts, config.Generic, process, network, runner.StateReader.Planner.Schemas, files)
	if err != nil {
		return nil, err
	}
	sending, err := newSending(opts.Notifications.ClusterName, config.Generic.ClientConfig, network, process)
	if err != nil {
		return nil, err
	}
	if config.Notifications, err = notification.NewTester(sending); err != nil {
		return nil, err
	}
	config.Past, config.Plans = past, syncer.NewPreviewer(runner)
	server, err := config.Complete().New()
	if err != nil {
		return nil, err
	}
	server.AddOutlasting(reports.run)
	if err := addBackground(server, monitor, rules, stores); err != nil {
		return nil, err
	}
	controllers := &controllers{
		opts: opts, cluster: config.Generic.ClientConfig, process: process,
		reports: reports, runner: runner.WithRecords(server.Records), history: changes, files: files, resolver: rules,
		network: network, past: past, sending: sending,
	}
	return server, controllers.addTo(server, stores.identity, append([]controller.Runner{rotation}, certificates...)...)
}

// addBackground adds the tasks of every replica. Every replica watches the types, because every replica admits rules.
func addBackground(server *apiserver.Server, monitor *unreadable.Monitor, rules *mirror.Resolver, stores *stores) error {
	return errors.Join(
		server.AddBackground("look-for-unreadable-records", monitor.Run),
		server.AddBackground("follow-resource-types", rules.Types.Run),
		server.AddBackground("release-memory", func(ctx context.Context) { releaseMemory(ctx, stores.releasePages) }),
	)
}

// applyOptions fills config. It returns the clients for the cluster, and sets the types of rules, which admission reads.
func applyOptions(
	ctx context.Context, opts *options.Options, config *apiserver.Config, rules *mirror.Resolver,
) (clients *watch.Clients, err error) {
	err = opts.ApplyTo(ctx, config, func(generic *genericapiserver.RecommendedConfig) (admission.PluginInitializer, error) {
		references, err := newReferences(generic.LoopbackClientConfig, generic.ClientConfig)
		if err != nil {
			return nil, err
		}
		if clients, err = watch.NewClients(generic.ClientConfig); err != nil {
			return nil, err
		}
		rules.Types, err = watch.NewTypes(clients.Discovery, clients.Metadata, opts.Mirror.DiscoveryRefresh)
		return admission.PluginInitializers{
			callerrights.NewInitializer(rules, references, opts.Namespace), placement.NewInitializer(opts.Namespace, references),
		}, err
	})
	return clients, err
}
