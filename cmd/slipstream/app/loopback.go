// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
)

// newLoopbackClient returns a client of this server, by its loopback configuration. user is the user agent of its requests. The client
// has no rate limit, because the server limits requests itself, and compresses nothing, because the bytes do not leave the machine.
func newLoopbackClient(loopback *rest.Config, user string) (versioned.Interface, error) {
	config := rest.AddUserAgent(rest.CopyConfig(loopback), user)
	config.QPS = -1
	config.DisableCompression = true
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client of this server for %s: %w", user, err)
	}
	return client, nil
}
