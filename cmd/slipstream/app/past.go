// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror"
	"github.com/configbutler/slipstream/pkg/mirror/blobcache"
	"github.com/configbutler/slipstream/pkg/mirror/past"
)

// newPast returns what reads objects as they were in Git. Every replica serves it.
func newPast(
	opts *options.Options, generic *genericapiserver.RecommendedConfig, process *controller.Process, network *proxy.Network, schemas *diff.Schemas,
	files *blobcache.Cache,
) (*past.Past, error) {
	azure, err := opts.Git.Azure()
	if err != nil {
		return nil, err
	}
	namespaces := generic.SharedInformerFactory.Core().V1().Namespaces().Lister()
	sources := mirror.NewSources(mirror.SourcesConfig{
		Client: process.Client, Cluster: process.Cluster.Kubernetes,
		Namespace: func(name string) (watch.Namespace, bool) {
			found, err := namespaces.Get(name)
			if err != nil {
				return watch.Namespace{}, false
			}
			return watch.Namespace{Name: name, UID: found.UID, Labels: found.Labels}, true
		},
		Installation:  installationOf(opts),
		AllowInsecure: opts.Git.AllowInsecure, Memory: opts.Mirror.Limits().RemoteMemory, Network: network, Azure: azure,
	})
	return past.New(past.Config{
		Client: process.Client, Sources: sources, Cluster: process.Cluster.Kubernetes, Namespace: opts.Namespace, Schemas: schemas, Contents: files,
		Clock: process.Clock,
	}), nil
}
