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

// pageRows is how many rows are read at once.
const pageRows = 200

// Rows are a part of a store that is encrypted.
type Rows struct {
	// name tells the parts apart in metrics and logs.
	name string
	kv   clientv3.KV
	// prefix begins the keys of these rows and of no others: the etcd may be somebody else's as well.
	prefix   string
	resource func(key string) schema.GroupResource
}

// Objects are the objects that an API server with a storage prefix keeps in kv.
func Objects(kv clientv3.KV, prefix string) Rows {
	prefix = path.Join("/", prefix, group) + "/"
	return Rows{name: "objects", kv: kv, prefix: prefix, resource: func(key string) schema.GroupResource {
		resource, _, _ := strings.Cut(strings.TrimPrefix(key, prefix), "/")
		return schema.GroupResource{Group: group, Resource: resource}
	}}
}

// Work are the rows that a work store with a prefix keeps in kv.
func Work(kv clientv3.KV, prefix string) Rows {
	return Rows{name: "work", kv: kv, prefix: strings.TrimSuffix(prefix, "/") + "/", resource: func(string) schema.GroupResource {
		return WorkResource
	}}
}

// scan visits the rows in the order of their keys, some at a time.
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

// Find describes the first row that is encrypted, if there is one, for [Ensure].
func Find(ctx context.Context, parts ...Rows) (string, error) {
	for _, rows := range parts {
		for row, err := range rows.scan(ctx) {
			if err != nil {
				return "", err
			}
			if by := EncryptedBy(row.Value); by != "" {
				return fmt.Sprintf("%s is sealed by %s", row.Key, by), nil
			}
		}
	}
	return "", nil
}

// Each visits the rows of a part with what is in them, or with the error that opening them ends with. Rows that are
// encrypted by a KMS plugin are left out while the plugin does not answer: nothing is known about them then.
func (s *Encrypter) Each(ctx context.Context, rows Rows, visit func(row *mvccpb.KeyValue, plain []byte, err error) error) error {
	for row, err := range rows.scan(ctx) {
		if err != nil {
			return err
		}
		plain, _, err := s.open(ctx, rows, row)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if encryptedByPlugin(row.Value) && !s.pluginsAnswer(ctx) {
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

// pluginsAnswer reports whether all KMS plugins are known to answer.
func (s *Encrypter) pluginsAnswer(ctx context.Context) bool {
	for _, checker := range s.checks {
		if check(ctx, checker) != nil {
			return false
		}
	}
	return len(s.checks) > 0
}

// Resource is what the row with a key is encrypted as.
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

// Remove deletes a row unless it has changed since it was read, and reports whether it did.
func (r Rows) Remove(ctx context.Context, row *mvccpb.KeyValue) (bool, error) {
	key := string(row.Key)
	answer, err := r.kv.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", row.ModRevision)).Then(clientv3.OpDelete(key)).Commit()
	if err != nil {
		return false, fmt.Errorf("deleting %s: %w", key, err)
	}
	return answer.Succeeded, nil
}

// open opens a row, and tells whether it would be encrypted otherwise today.
func (s *Encrypter) open(ctx context.Context, rows Rows, row *mvccpb.KeyValue) (plain []byte, stale bool, err error) {
	if err := checkForm(row.Value); err != nil {
		return nil, false, err
	}
	key := string(row.Key)
	return s.transformers.TransformerForResource(rows.resource(key)).TransformFromStorage(ctx, row.Value, value.DefaultContext(key))
}
