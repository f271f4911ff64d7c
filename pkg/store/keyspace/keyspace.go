// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package keyspace determines the key prefixes of a server's objects and working state.
//
// Every value is encrypted with its whole key as additional data, so no value can move to
// another prefix: files keep the prefix that they have, and only files that hold nothing take
// the configured one.
package keyspace

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// Default is the prefix if none is configured, in files and in etcd.
	Default = "/slipstream"
	// work follows the prefix in the key of a row of the working state.
	work = "-work"
)

// Work returns the prefix of the working state. It is beside the prefix of the objects, not below
// it, so that no list of objects reads a row.
func Work(prefix string) string { return prefix + work }

// OfFiles returns the prefix of the keys in the two files of a server with the kinds of one API
// group: the configured one if a key has it or there are no keys, otherwise the one that the keys have.
func OfFiles(ctx context.Context, group string, objects, rows clientv3.KV, configured string) (string, error) {
	if found, err := holds(ctx, group, objects, rows, configured); found || err != nil {
		return configured, err
	}
	object, err := first(ctx, objects, "")
	if err != nil {
		return "", err
	}
	if end := strings.LastIndex(object, below(group)); end > 0 {
		return object[:end], nil
	}
	row, err := first(ctx, rows, "")
	if err != nil {
		return "", err
	}
	if end := strings.Index(row, work+"/"); end > 0 {
		return row[:end], nil
	}
	return configured, nil
}

// below returns what follows the prefix in the key of an object.
func below(group string) string { return "/" + group + "/" }

// holds reports whether a store has objects or rows with a prefix.
func holds(ctx context.Context, group string, objects, rows clientv3.KV, prefix string) (bool, error) {
	object, err := first(ctx, objects, prefix+below(group))
	if err != nil || object != "" {
		return object != "", err
	}
	row, err := first(ctx, rows, Work(prefix)+"/")
	return row != "", err
}

// first returns the first key with a prefix, or an empty string.
func first(ctx context.Context, store clientv3.KV, prefix string) (string, error) {
	response, err := store.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(1))
	if err != nil {
		return "", fmt.Errorf("listing keys with prefix %q: %w", prefix, err)
	}
	if len(response.Kvs) == 0 {
		return "", nil
	}
	return string(response.Kvs[0].Key), nil
}
