// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/history"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// openHistory returns the history. It makes the API of config serve lists of Changes in the order of time. The storage and the encryption of
// config must have been set. ctx must outlive the server.
func openHistory(
	ctx context.Context, opts *options.Options, stores *stores, config *genericapiserver.RecommendedConfig, work *table.Store,
) *history.History {
	rows := work.Table(history.TableName)
	objects := table.New(stores.client(ctx, stores.api).KV, opts.Storage.Etcd.StorageConfig.Prefix+"/"+v1alpha1.GroupName,
		table.WithTransformer(config.ResourceTransformers.TransformerForResource(history.Resource)))
	changes := objects.Table(history.Resource.Resource)
	config.RESTOptionsGetter = history.NewRESTOptionsGetter(config.RESTOptionsGetter, changes, rows)
	return history.New(history.Config{Changes: changes, Rows: rows, Namespace: opts.Namespace, Clock: clock.RealClock{}})
}
