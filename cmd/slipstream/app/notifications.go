// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/pkg/access/egress/proxy"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/notification"
	"github.com/configbutler/slipstream/pkg/notification/delivery"
)

const (
	// receiverQPS and receiverBurst limit the requests of one NotificationSink to the cluster: each message reads a Secret, or records
	// Events.
	receiverQPS   = 5
	receiverBurst = 10
)

// newSending returns how notifications and test messages are sent.
func newSending(
	clusterName string, cluster *rest.Config, network *proxy.Network, process *controller.Process,
) (sending notification.TesterConfig, err error) {
	config := rest.AddUserAgent(rest.CopyConfig(cluster), "notification")
	config.QPS, config.Burst, config.RateLimiter = receiverQPS, receiverBurst, nil
	connections, err := rest.HTTPClientFor(config)
	if err != nil {
		return sending, fmt.Errorf("set up the transport to the cluster of NotificationSinks: %w", err)
	}
	connect := func(sink *v1alpha1.NotificationSink) (delivery.Receiver, error) {
		client, err := kubernetes.NewForConfigAndClient(config, connections) // with a rate limit of its own
		if err != nil {
			return nil, fmt.Errorf("make a client for the Secret of a sink: %w", err)
		}
		return delivery.New(delivery.Config{
			Secrets: client.CoreV1(), Events: process.Events, Network: network, Clock: process.Clock,
			Source: fmt.Sprintf("/apis/%s/namespaces/%s/notificationsinks/%s", v1alpha1.SchemeGroupVersion, sink.Namespace, sink.Name),
		}, sink)
	}
	return notification.TesterConfig{Cluster: clusterName, Connect: connect, Clock: process.Clock}, nil
}

// notifications sends the notifications of NotificationSinks.
func (c *controllers) notifications() *notification.Controller {
	return &notification.Controller{Config: notification.Config{
		Namespace: c.opts.Namespace, Cluster: c.sending.Cluster, Connect: c.sending.Connect, Diff: c.past.Diff,
	}}
}
