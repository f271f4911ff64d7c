// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/store/encryption"
)

// Command is what moves records out of a store.
const Command = "slipstream store set-aside"

// Record is a stored record that cannot be read.
type Record struct {
	// Resource is that of an object, or [encryption.WorkResource] for a row of the working state.
	Resource schema.GroupResource
	// Key is the whole key in the store.
	Key string
	// Err is why it cannot be read.
	Err error
}

// Name is the namespace and the name of an object, or the key of a row of the working state.
func (r Record) Name() string {
	_, name, found := strings.Cut(r.Key, "/"+r.Resource.Group+"/"+r.Resource.Resource+"/")
	if !found {
		return r.Key
	}
	return name
}

// String names the record and its key.
func (r Record) String() string {
	if r.Resource == encryption.WorkResource {
		return fmt.Sprintf("row of the working state, key %q", r.Key)
	}
	return fmt.Sprintf("%s %s, key %q", r.Resource, r.Name(), r.Key)
}

// Store is everything that a server has stored.
type Store struct {
	// Encrypter opens the rows.
	Encrypter *encryption.Encrypter
	// Rows are all that is stored.
	Rows []encryption.Rows
	// Decode fails for an object that cannot be decoded.
	Decode func(plain []byte) error
}

// each visits every row. err is why it cannot be read, nil if it can; opened says whether it opens.
func (s *Store) each(ctx context.Context, visit func(rows encryption.Rows, row *mvccpb.KeyValue, opened bool, err error) error) error {
	for _, rows := range s.Rows {
		err := s.Encrypter.Each(ctx, rows, func(row *mvccpb.KeyValue, plain []byte, err error) error {
			opened := err == nil
			if err == nil && rows.Resource(string(row.Key)) != encryption.WorkResource {
				err = s.Decode(plain)
			}
			return visit(rows, row, opened, err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Find visits the records that cannot be read.
func (s *Store) Find(ctx context.Context, found func(Record)) error {
	return s.each(ctx, func(rows encryption.Rows, row *mvccpb.KeyValue, _ bool, err error) error {
		if err != nil {
			found(newRecord(rows, row, err))
		}
		return nil
	})
}

func newRecord(rows encryption.Rows, row *mvccpb.KeyValue, err error) Record {
	key := string(row.Key)
	return Record{Resource: rows.Resource(key), Key: key, Err: err}
}
