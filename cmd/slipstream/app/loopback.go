// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
)

// newLoopbackClient returns a client with which a part of this server asks the server itself, by the loopback
// configuration; user says in requests which part that is. The server protects itself, so that the client has no limit
// of its own. Nothing is compressed, because the bytes do not leave the machine.
func newLoopbackClient(loopback *rest.Config, user string) (versioned.Interface, error) {
	config := rest.AddUserAgent(rest.CopyConfig(loopback), user)
	config.QPS = -1
	config.DisableCompression = true
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of this server for %s: %w", user, err)
	}
	return client, nil
}
