// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Clients are the clients of the cluster's API server. They share one HTTP client: every watch is one stream of a common HTTP/2
// connection.
type Clients struct {
	Discovery  *discovery.DiscoveryClient
	Dynamic    dynamic.Interface
	Metadata   metadata.Interface
	Kubernetes kubernetes.Interface
}

// NewClients returns clients made from a copy of config that is set up for watching, see clientConfig.
func NewClients(config *rest.Config) (*Clients, error) {
	config = clientConfig(config)
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("setting up the transport to the source cluster: %w", err)
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("setting up the discovery client: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("setting up the dynamic client: %w", err)
	}
	metadataClient, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), httpClient)
	if err != nil {
		return nil, fmt.Errorf("setting up the metadata client: %w", err)
	}
	kubernetesClient, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("setting up the Kubernetes client: %w", err)
	}
	return &Clients{Discovery: discoveryClient, Dynamic: dynamicClient, Metadata: metadataClient, Kubernetes: kubernetesClient}, nil
}

// clientConfig copies config without a client-side rate limit, which would let a hundred watches start at five a
// second: the API server's own priority and fairness protects it, and every retry in this package backs off. There is
// no overall timeout either, because it would cut watches off; requests that must end carry their own deadline.
// Compression is off: it costs the API server more time than a cluster network takes for the plain bytes.
func clientConfig(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.RateLimiter = nil
	config.Timeout = 0
	config.DisableCompression = true
	return rest.AddUserAgent(config, "source")
}
