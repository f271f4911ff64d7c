// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/pkg/kube/watch"
)

// newCatalogue follows the types of the cluster that config leads to, once it is run.
func newCatalogue(config *rest.Config, refresh time.Duration) (*watch.Catalogue, error) {
	clients, err := watch.NewClients(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster for its resource types: %w", err)
	}
	return watch.NewCatalogue(clients.Discovery, clients.Metadata, refresh)
}
