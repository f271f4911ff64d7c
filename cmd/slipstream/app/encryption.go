// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/history"
	"github.com/configbutler/slipstream/pkg/store/encryption"
)

// encryptionTimeout limits what is read before the server starts.
const encryptionTimeout = 30 * time.Second

// openEncryption enables encryption at rest, and returns the runner that keeps stored rows under the current key. The
// server is not ready while it cannot encrypt or decrypt. It stays alive, as upstream does, because a restart would not
// help. ctx must outlive the server.
func openEncryption(
	ctx context.Context, opts *options.Options, stores *stores, config *genericapiserver.Config,
) (*encryption.RotationController, error) {
	stored := stores.encrypted(ctx, opts.Storage.Etcd.StorageConfig.Prefix)
	encrypter, err := openEncrypter(ctx, opts, stored, config.APIServerID)
	if err != nil {
		return nil, err
	}
	config.ResourceTransformers = history.Transformers(encrypter.Transformers())
	config.HealthzChecks = append(config.HealthzChecks, encrypter.HealthChecks()...)
	config.ReadyzChecks = append(config.ReadyzChecks, encrypter.HealthChecks()...)
	times := encryption.DefaultTimes(opts.Storage.Etcd.StorageConfig.CompactionInterval)
	return &encryption.RotationController{Encrypter: encrypter, Rows: stored, Times: times}, nil
}

// openEncrypter loads the encryption configuration. It is generated at the first start unless the user provides one.
func openEncrypter(ctx context.Context, opts *options.Options, stored []encryption.Rows, serverID string) (*encryption.Encrypter, error) {
	origin, err := newOrigin(opts)
	if err != nil {
		return nil, err
	}
	starting, cancel := context.WithTimeout(ctx, encryptionTimeout)
	defer cancel()
	home, ours := origin.(encryption.Home)
	if ours {
		find := func(ctx context.Context) (string, error) { return encryption.Find(ctx, stored...) }
		if err := encryption.Ensure(starting, home, find); err != nil {
			return nil, err
		}
	}
	encrypter, err := encryption.Open(ctx, encryption.Config{
		Origin: origin, Reload: ours || opts.Storage.Etcd.EncryptionProviderConfigAutomaticReload, ServerID: serverID,
	})
	if err != nil {
		return nil, err
	}
	return encrypter, encrypter.Check(starting, stored...)
}

// newOrigin returns the source of the encryption configuration.
func newOrigin(opts *options.Options) (encryption.Origin, error) {
	if file := opts.Storage.Etcd.EncryptionProviderConfigFilepath; file != "" {
		return encryption.File{Path: file}, nil
	}
	return newHome(opts)
}

// newHome returns where the server stores its own configuration: next to the files, or in the cluster if there can be
// replicas.
func newHome(opts *options.Options) (encryption.Home, error) {
	switch opts.Storage.Backend {
	case options.BackendBolt:
		return encryption.Folder{Path: opts.Storage.DataDir}, nil
	case options.BackendEtcd3:
		return newSecretHome(opts)
	}
	return nil, opts.Storage.UnknownBackend()
}

func newSecretHome(opts *options.Options) (encryption.Home, error) {
	config, err := clusterConfig(opts.Recommended.CoreAPI.CoreAPIKubeconfigPath)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "encryption"))
	if err != nil {
		return nil, fmt.Errorf("creating a client for the Secret of the encryption configuration: %w", err)
	}
	return encryption.ClusterSecret{Client: client.CoreV1().Secrets(opts.Namespace), Namespace: opts.Namespace}, nil
}

// clusterConfig returns the client configuration of a kubeconfig, or of the pod if the path is empty. It equals that of
// upstream's option, which is only available once the storage is configured.
func clusterConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("connecting to the cluster without --kubeconfig: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig=%s: %w", kubeconfig, err)
	}
	return config, nil
}
