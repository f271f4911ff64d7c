// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"errors"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/configbutler/slipstream/pkg/store/table"
)

// ledgerParts is the number of parts in a ledger's prefix: the UID of the pipeline, the name of the sink, and its address.
const ledgerParts = 3

// ledgerPrefix returns the prefix of a ledger's rows. A sink with another address has another ledger.
func ledgerPrefix(pipeline, sink, address string) string {
	return strings.Join([]string{pipeline, sink, address, ""}, "/")
}

// dropLedger deletes the rows of an unused ledger.
func dropLedger(ctx context.Context, rows *table.Table, prefix string) error {
	return rows.DeleteRange(ctx, prefix, clientv3.GetPrefixRangeEnd(prefix))
}

// sweep deletes the rows of all ledgers except those to keep.
func sweep(ctx context.Context, rows *table.Table, keep func(prefix string) bool) error {
	for from := ""; ; {
		key, err := nextKey(ctx, rows, from)
		if err != nil || key == "" {
			return err
		}
		prefix := prefixIn(key)
		from = clientv3.GetPrefixRangeEnd(prefix)
		if prefix == key { // The row belongs to no ledger; only it is deleted.
			from = key + "\x00"
		}
		if keep(prefix) {
			continue
		}
		if err := rows.DeleteRange(ctx, prefix, from); err != nil {
			return err
		}
	}
}

// nextKey returns the first key that is not before from, empty if there is none. The row need not be readable.
func nextKey(ctx context.Context, rows *table.Table, from string) (string, error) {
	for row, err := range rows.ScanEach(ctx, "", from) {
		if unopened := (&table.UnopenedError{}); errors.As(err, &unopened) {
			err = nil
		}
		return row.Key, err
	}
	return "", nil
}

// prefixIn returns the prefix of the ledger of a row, or the whole key if it belongs to no ledger.
func prefixIn(key string) string {
	parts := strings.SplitAfterN(key, "/", ledgerParts+1)
	if len(parts) <= ledgerParts {
		return key
	}
	return strings.Join(parts[:ledgerParts], "")
}
