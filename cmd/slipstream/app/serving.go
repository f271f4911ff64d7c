// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/controller"
	"github.com/configbutler/slipstream/pkg/kube/logredact"
	"github.com/configbutler/slipstream/pkg/serving/certificates"
)

// Timeouts for a cluster that does not respond at the start.
const (
	// reachLimit limits how long a start waits. It is less than the startup probe allows.
	reachLimit    = 30 * time.Second
	reachInterval = time.Second
)

// reachCluster waits until the cluster responds, or until the limit, after which the start continues and fails with the
// reason: the server cannot authenticate users without the cluster. Otherwise a server that starts while kube-apiserver
// restarts would exit and wait for kubelet's back-off.
func reachCluster(ctx context.Context, opts *options.Options) error {
	config, err := clusterConfig(opts.Recommended.CoreAPI.CoreAPIKubeconfigPath)
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("creating a client for the cluster: %w", err)
	}
	defer client.CloseIdleConnections()
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return fmt.Errorf("building the address of the cluster: %w", err)
	}
	logged := false
	err = wait.PollUntilContextTimeout(ctx, reachInterval, reachLimit, true, func(ctx context.Context) (bool, error) {
		failure := probe(ctx, client, base.JoinPath("livez").String())
		if failure != nil && !logged {
			klog.FromContext(ctx).Info("Waiting for the cluster to respond", "error", failure.Error(), "limit", reachLimit)
			logged = true
		}
		var distrust *tls.CertificateVerificationError
		return failure == nil || errors.As(failure, &distrust), nil
	})
	if err != nil {
		klog.FromContext(ctx).Info("Starting although the cluster does not respond")
	}
	return nil
}

// probe returns an error unless a server responds.
func probe(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, response.Body) // The content does not matter.
	return response.Body.Close()
}

// openServing makes the server use a managed certificate, if the options enable it, and returns the leader's runner.
func openServing(ctx context.Context, opts *options.Options, config *genericapiserver.RecommendedConfig) ([]controller.Runner, error) {
	if opts.Serving.AuthoritySecret == "" && opts.Serving.AuthorityFile == "" {
		return nil, nil
	}
	cluster := rest.AddUserAgent(rest.CopyConfig(config.ClientConfig), "serving-certificate")
	service := types.NamespacedName{Namespace: opts.Namespace, Name: opts.Serving.Service}
	source, err := newCertificateSource(opts, cluster, service)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("creating a client for the authorities of the serving certificate: %w", err)
	}
	watcher, err := metadata.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("creating a client that watches the objects that register the server: %w", err)
	}
	provider := certificates.New(certificates.Config{
		Source: source, Client: client, Watcher: watcher, Service: service, Clock: clock.RealClock{},
	})
	if err := provider.RunOnce(logredact.WithoutBodies(ctx)); err != nil {
		return nil, err
	}
	// The listener starts and stops it.
	config.SecureServing.Cert = provider
	return []controller.Runner{certificates.NewLeader(provider)}, nil
}

// newCertificateSource returns the source of certificates.
func newCertificateSource(opts *options.Options, cluster *rest.Config, service types.NamespacedName) (certificates.Source, error) {
	serving := opts.Serving
	if serving.AuthorityFile != "" {
		pair := opts.Recommended.SecureServing.ServerCert.CertKey
		return certificates.Files{
			Certificate: pair.CertFile, Key: pair.KeyFile, Authority: serving.AuthorityFile, Name: certificates.ServerName(service),
		}, nil
	}
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("creating a client for the Secret of the serving authority: %w", err)
	}
	return &certificates.OwnAuthority{
		Client: client.CoreV1().Secrets(service.Namespace), Name: serving.AuthoritySecret, Names: certificates.Names(service),
		CertificateLifetime: serving.CertificateDuration, AuthorityLifetime: serving.AuthorityDuration,
	}, nil
}
