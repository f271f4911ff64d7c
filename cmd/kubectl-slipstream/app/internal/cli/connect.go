// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	client "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
)

// Connect returns clients for the API server of flags and kubeconfigs.
func Connect(config genericclioptions.RESTClientGetter) (client.ConfigbutlerV1alpha1Interface, error) {
	found, err := config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	clients, err := versioned.NewForConfig(found)
	if err != nil {
		return nil, err
	}
	return clients.ConfigbutlerV1alpha1(), nil
}
