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

// Command is the command that moves records out of a store.
const Command = "slipstream store set-aside"

// Record is a stored record that cannot be read.
type Record struct {
	// Resource is the resource of an object, or [encryption.WorkResource] for a row of the working state.
	Resource schema.GroupResource
	// Key is the full key in the store.
	Key string
	// Err is the error of reading it.
	Err error
}

// Name returns namespace and name of an object, or the key of a row of the working state.
func (r Record) Name() string {
	_, name, found := strings.Cut(r.Key, "/"+r.Resource.Group+"/"+r.Resource.Resource+"/")
	if !found {
		return r.Key
	}
	return name
}

// String returns a description of the record with its key.
func (r Record) String() string {
	if r.Resource == encryption.WorkResource {
		return fmt.Sprintf("row of the working state, key %q", r.Key)
	}
	return fmt.Sprintf("%s %s, key %q", r.Resource, r.Name(), r.Key)
}

// Store is all stored data of a server.
type Store struct {
	// Encrypter decrypts the rows.
	Encrypter *encryption.Encrypter
	// Rows are all stored rows.
	Rows []encryption.Rows
	// Decode returns an error for an object that cannot be decoded.
	Decode func(plain []byte) error
}

// each visits every row. err is the error of reading it, if any; decrypted reports whether it could be decrypted.
func (s *Store) each(ctx context.Context, visit func(rows encryption.Rows, row *mvccpb.KeyValue, decrypted bool, err error) error) error {
	for _, rows := range s.Rows {
		err := s.Encrypter.Each(ctx, rows, func(row *mvccpb.KeyValue, plain []byte, err error) error {
			decrypted := err == nil
			if err == nil && rows.Resource(string(row.Key)) != encryption.WorkResource {
				err = s.Decode(plain)
			}
			return visit(rows, row, decrypted, err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Find visits the records that cannot be read. It calls read after each record, and ends with its error.
func (s *Store) Find(ctx context.Context, found func(Record), read func(ctx context.Context) error) error {
	return s.each(ctx, func(rows encryption.Rows, row *mvccpb.KeyValue, _ bool, err error) error {
		if err != nil {
			found(newRecord(rows, row, err))
		}
		return read(ctx)
	})
}

func newRecord(rows encryption.Rows, row *mvccpb.KeyValue, err error) Record {
	key := string(row.Key)
	return Record{Resource: rows.Resource(key), Key: key, Err: err}
}
