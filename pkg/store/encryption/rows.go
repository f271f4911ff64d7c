// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"fmt"
	"iter"
	"path"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"
)

// pageRows is the page size of reads, in rows.
const pageRows = 200

// Rows is an encrypted part of a store.
type Rows struct {
	// name identifies the part in metrics and logs.
	name string
	kv   clientv3.KV
	// prefix is the key prefix of these rows and of no others: the etcd may have other users.
	prefix   string
	resource func(key string) schema.GroupResource
}

// Objects returns the objects that an API server with a storage prefix stores in kv.
func Objects(kv clientv3.KV, prefix string) Rows {
	prefix = path.Join("/", prefix, group) + "/"
	return Rows{name: "objects", kv: kv, prefix: prefix, resource: func(key string) schema.GroupResource {
		resource, _, _ := strings.Cut(strings.TrimPrefix(key, prefix), "/")
		return schema.GroupResource{Group: group, Resource: resource}
	}}
}

// Work returns the rows that a work store with a prefix stores in kv.
func Work(kv clientv3.KV, prefix string) Rows {
	return Rows{name: "work", kv: kv, prefix: strings.TrimSuffix(prefix, "/") + "/", resource: func(string) schema.GroupResource {
		return WorkResource
	}}
}

// scan iterates over the rows in key order, in pages.
func (r Rows) scan(ctx context.Context) iter.Seq2[*mvccpb.KeyValue, error] {
	return func(yield func(*mvccpb.KeyValue, error) bool) {
		end := clientv3.GetPrefixRangeEnd(r.prefix)
		for start := r.prefix; ; {
			page, err := r.kv.Get(ctx, start, clientv3.WithRange(end), clientv3.WithLimit(pageRows))
			if err != nil {
				yield(nil, fmt.Errorf("reading rows from %s: %w", start, err))
				return
			}
			for _, row := range page.Kvs {
				if !yield(row, nil) {
					return
				}
			}
			if !page.More {
				return
			}
			start = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
		}
	}
}

// Find returns a description of the first encrypted row, if any, for [Ensure].
func Find(ctx context.Context, parts ...Rows) (string, error) {
	for _, rows := range parts {
		for row, err := range rows.scan(ctx) {
			if err != nil {
				return "", err
			}
			if by := EncryptedBy(row.Value); by != "" {
				return fmt.Sprintf("%s is encrypted with %s", row.Key, by), nil
			}
		}
	}
	return "", nil
}

// Each visits the rows of a part with their decrypted content, or with the error of decrypting them. Rows that are
// encrypted by a KMS plugin are skipped while the plugin does not respond: their state is then unknown.
func (e *Encrypter) Each(ctx context.Context, rows Rows, visit func(row *mvccpb.KeyValue, plain []byte, err error) error) error {
	for row, err := range rows.scan(ctx) {
		if err != nil {
			return err
		}
		plain, _, err := e.decrypt(ctx, rows, row)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if encryptedByPlugin(row.Value) && !e.pluginsAnswer(ctx) {
				continue
			}
			err = explain(row.Value, err)
		}
		if err := visit(row, plain, err); err != nil {
			return err
		}
	}
	return nil
}

// pluginsAnswer reports whether all KMS plugins are known to respond.
func (e *Encrypter) pluginsAnswer(ctx context.Context) bool {
	for _, checker := range e.checks {
		if check(ctx, checker) != nil {
			return false
		}
	}
	return len(e.checks) > 0
}

// Resource returns the resource as which the row with a key is encrypted.
func (r Rows) Resource(key string) schema.GroupResource { return r.resource(key) }

// Get returns the row with a key, or nil.
func (r Rows) Get(ctx context.Context, key string) (*mvccpb.KeyValue, error) {
	answer, err := r.kv.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	if len(answer.Kvs) == 0 {
		return nil, nil
	}
	return answer.Kvs[0], nil
}

// Remove deletes a row unless it has changed since it was read, and reports whether it was deleted.
func (r Rows) Remove(ctx context.Context, row *mvccpb.KeyValue) (bool, error) {
	key := string(row.Key)
	answer, err := r.kv.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", row.ModRevision)).Then(clientv3.OpDelete(key)).Commit()
	if err != nil {
		return false, fmt.Errorf("deleting %s: %w", key, err)
	}
	return answer.Succeeded, nil
}

// decrypt decrypts a row, and reports whether it is stale: it would now be encrypted differently.
func (e *Encrypter) decrypt(ctx context.Context, rows Rows, row *mvccpb.KeyValue) (plain []byte, stale bool, err error) {
	if err := checkForm(row.Value); err != nil {
		return nil, false, err
	}
	key := string(row.Key)
	return e.transformers.TransformerForResource(rows.resource(key)).TransformFromStorage(ctx, row.Value, value.DefaultContext(key))
}
