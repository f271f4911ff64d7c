// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package keyspace answers below which keys a store holds what the server has stored.
//
// Every value is sealed under its whole key, so nothing can move to another prefix: what
// a server finds stays where it is, and only a store that holds nothing takes the prefix
// that is configured.
package keyspace

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// Default is the prefix of servers for which none is configured, in files and in etcd.
	Default = "/slipstream"
	// earlier was the default before.
	earlier = "/registry"
	// work follows the prefix in the key of a row of the working state.
	work = "-work"
)

// Work is the prefix of the working state. It lies beside that of the objects, not below
// it, so that no list of objects meets a row.
func Work(prefix string) string { return prefix + work }

// OfFiles is the prefix of what two files hold, which belong to one server with the kinds
// of one API group: the configured one if there is anything below it, or else the one that
// there is.
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

// OfEtcd is the prefix of a server that was not told one: the default, unless there is
// nothing below it and something below the default of before. An etcd may hold what
// belongs to others, so nothing else is taken for the server's.
func OfEtcd(ctx context.Context, group string, etcd clientv3.KV) (string, error) {
	for _, prefix := range []string{Default, earlier} {
		if found, err := holds(ctx, group, etcd, etcd, prefix); found || err != nil {
			return prefix, err
		}
	}
	return Default, nil
}

// below is what follows the prefix in the key of an object.
func below(group string) string { return "/" + group + "/" }

// holds tells whether there are objects or rows of a prefix.
func holds(ctx context.Context, group string, objects, rows clientv3.KV, prefix string) (bool, error) {
	object, err := first(ctx, objects, prefix+below(group))
	if err != nil || object != "" {
		return object != "", err
	}
	row, err := first(ctx, rows, Work(prefix)+"/")
	return row != "", err
}

// first is the first key that begins so, or empty.
func first(ctx context.Context, store clientv3.KV, begins string) (string, error) {
	response, err := store.Get(ctx, begins, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(1))
	if err != nil {
		return "", fmt.Errorf("looking for what is stored below %q: %w", begins, err)
	}
	if len(response.Kvs) == 0 {
		return "", nil
	}
	return string(response.Kvs[0].Key), nil
}
