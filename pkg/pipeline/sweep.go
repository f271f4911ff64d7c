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

// ledgerParts is how many parts the prefix of a ledger has: the uid of its pipeline, the name of its sink, and the address of that.
const ledgerParts = 3

// ledgerPrefix is what the rows of a ledger begin with. A sink at another address has another one: it knows nothing yet.
func ledgerPrefix(pipeline, sink, address string) string {
	return strings.Join([]string{pipeline, sink, address, ""}, "/")
}

// dropLedger removes the rows of a ledger that nobody uses.
func dropLedger(ctx context.Context, rows *table.Table, prefix string) error {
	return rows.DeleteRange(ctx, prefix, clientv3.GetPrefixRangeEnd(prefix))
}

// sweep removes the rows of all ledgers but those to keep.
func sweep(ctx context.Context, rows *table.Table, keep func(prefix string) bool) error {
	for from := ""; ; {
		key, err := nextKey(ctx, rows, from)
		if err != nil || key == "" {
			return err
		}
		prefix := prefixIn(key)
		from = clientv3.GetPrefixRangeEnd(prefix)
		if prefix == key { // It is of no ledger, and nothing goes but itself.
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

// nextKey is the first key of a row that is not before from; empty when there is none. What is in the row does not matter.
func nextKey(ctx context.Context, rows *table.Table, from string) (string, error) {
	for row, err := range rows.ScanEach(ctx, "", from) {
		if unopened := (&table.UnopenedError{}); errors.As(err, &unopened) {
			err = nil
		}
		return row.Key, err
	}
	return "", nil
}

// prefixIn is the prefix of the ledger that has a row, or its whole key if no ledger has.
func prefixIn(key string) string {
	parts := strings.SplitAfterN(key, "/", ledgerParts+1)
	if len(parts) <= ledgerParts {
		return key
	}
	return strings.Join(parts[:ledgerParts], "")
}
