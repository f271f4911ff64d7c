// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/mirror/blobcache"
	"github.com/configbutler/slipstream/pkg/store/encryption"
)

// openFiles opens the cache of the contents of files in Git, encrypted as the working state. Without a place for it, as with etcd and
// without a volume, the server runs without: then Changes do not say which fields differ, and past contents are read from remotes.
func openFiles(ctx context.Context, opts *options.StorageOptions, encrypter *encryption.Encrypter) *blobcache.Cache {
	files, err := blobcache.Open(ctx, blobcache.Config{
		Dir: opts.CacheFolder(), MaxBytes: int64(opts.CacheMiB) << 20, Transformer: encrypter.Work(),
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Contents of files in Git are not kept: Changes will not say which fields differ")
		return nil
	}
	return files
}
