// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"

	cliflag "k8s.io/component-base/cli/flag"
)

// maxClusterName is the length of the name of the cluster, in bytes: that of names of objects.
const maxClusterName = 253

// NotificationOptions configure notifications.
type NotificationOptions struct {
	// ClusterName is the name of the cluster in notifications.
	ClusterName string
}

func (o *NotificationOptions) addFlags(flags *cliflag.NamedFlagSets) {
	flags.FlagSet("notifications").StringVar(&o.ClusterName, "cluster-name", o.ClusterName,
		"Name of the cluster in notifications, such as production-eu. At most 253 bytes. Without it, notifications do not name the cluster.")
}

func (o *NotificationOptions) validate() []error {
	if len(o.ClusterName) > maxClusterName {
		return []error{fmt.Errorf("--cluster-name has %d bytes, and may have at most %d", len(o.ClusterName), maxClusterName)}
	}
	return nil
}
