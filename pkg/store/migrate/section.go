// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"iter"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// pageKeys is the page size of reads, in keys.
const pageKeys = 128

// Section is a range of keys in a store.
type Section struct {
	// Name describes the content to the user.
	Name string
	// Prefix is the key prefix, with a trailing slash.
	Prefix string
	// Client is the client of the store.
	Client *clientv3.Client
}

// Store is the list of a store's sections, always in the same order. The first one holds the objects, whose revisions are
// resource versions.
type Store []Section

// Sections returns a store with the objects below one prefix and the working state below another, possibly in different
// files.
func Sections(objects *clientv3.Client, objectPrefix string, work *clientv3.Client, workPrefix string) Store {
	return Store{
		{Name: "objects", Prefix: directory(objectPrefix), Client: objects},
		{Name: "working state", Prefix: directory(workPrefix), Client: work},
	}
}

// directory returns the prefix with exactly one leading and one trailing slash, as the stores use it.
func directory(prefix string) string {
	for len(prefix) > 0 && prefix[len(prefix)-1] == '/' {
		prefix = prefix[:len(prefix)-1]
	}
	if len(prefix) == 0 || prefix[0] != '/' {
		prefix = "/" + prefix
	}
	return prefix + "/"
}

// view is a section at one revision.
type view struct {
	Section
	revision int64
	// keys is the number of keys.
	keys int64
	// floor is the revision below all keys of a copy.
	floor int64
}

// cut returns views of all sections of a store at the same time. Sections in separate files have separate revisions; no
// process writes to them.
func (s Store) cut(ctx context.Context) ([]view, error) {
	views := make([]view, 0, len(s))
	revisions := map[*clientv3.Client]int64{}
	for _, section := range s {
		v := view{Section: section, revision: revisions[section.Client]}
		options := []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithCountOnly(), clientv3.WithRev(v.revision)}
		response, err := section.Client.Get(ctx, section.Prefix, options...)
		if err != nil {
			return nil, fmt.Errorf("counting the keys below %s: %w", section.Prefix, err)
		}
		if v.revision == 0 {
			v.revision = response.Header.Revision
			revisions[section.Client] = v.revision
		}
		v.keys = response.Count
		views = append(views, v)
	}
	return views, nil
}

// entries yields the keys in order. An error is yielded last.
func (v view) entries(ctx context.Context) iter.Seq2[*mvccpb.KeyValue, error] {
	return func(yield func(*mvccpb.KeyValue, error) bool) {
		end := clientv3.GetPrefixRangeEnd(v.Prefix)
		for start := v.Prefix; ; {
			page, err := v.Client.Get(ctx, start, clientv3.WithRange(end), clientv3.WithLimit(pageKeys), clientv3.WithRev(v.revision))
			if err != nil {
				yield(nil, fmt.Errorf("reading the keys from %q on at revision %d: %w", start, v.revision, err))
				return
			}
			for _, kv := range page.Kvs {
				if !yield(kv, nil) {
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
