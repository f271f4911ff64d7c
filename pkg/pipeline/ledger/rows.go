// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/pkg/pipeline/item"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// rows finds and reads the stored rows of a ledger. It has no state that changes, and needs no lock.
type rows struct {
	table  *table.Table
	prefix string
}

// headName is the key of the batch's row, without the prefix. No key of an item equals it.
const headName = "batch"

func (r rows) headKey() string            { return r.prefix + headName }
func (r rows) key(object item.Key) string { return r.prefix + object.String() }

// parseKey returns the object of a row.
func (r rows) parseKey(key string) (item.Key, error) {
	return item.ParseKey(strings.TrimPrefix(key, r.prefix))
}

// head returns the stored batch, nil if all of it is settled, and its sequence. It returns an unreadableError if the row can never be read.
func (r rows) head(ctx context.Context) (*batchState, int64, error) {
	value, found, err := r.table.Get(ctx, r.headKey())
	if err != nil || !found {
		return nil, 0, unreadableIfUnopened(err)
	}
	return decodeHead(value)
}

// items returns the items of entries, nil for those that can never be read. After an error, it returns those that were read before. It
// uses only the key and the digest of an entry, which do not change, so that it needs no lock.
func (r rows) items(ctx context.Context, entries []*entry) ([][]byte, error) {
	var texts [][]byte
	for _, e := range entries {
		text, err := r.item(ctx, e.change.key, e.change.digest)
		var unreadable *unreadableError
		if errors.As(err, &unreadable) {
			klog.FromContext(ctx).Error(err, "Failed to read the item of an object, leaving it to the next list", "object", e.change.key)
		} else if err != nil {
			return texts, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// item returns the item with a digest from the row of an object. It returns an unreadableError if it can never be read.
func (r rows) item(ctx context.Context, object item.Key, digest [16]byte) ([]byte, error) {
	value, _, err := r.table.Get(ctx, r.key(object))
	if err != nil {
		return nil, unreadableIfUnopened(err)
	}
	row, err := decodeRow(value)
	if err != nil {
		return nil, err
	}
	stored, err := item.Unmarshal(row.item)
	if err != nil {
		return nil, &unreadableError{fmt.Errorf("decode the item of its row: %w", err)}
	}
	if stored.Digest() != digest {
		return nil, &unreadableError{errOtherItem}
	}
	return row.item, nil
}

// unreadableError is returned for rows that can never be read.
type unreadableError struct{ error }

func (e *unreadableError) Unwrap() error { return e.error }

// unreadableIfUnopened returns an unreadableError if err says that a value cannot be decrypted.
func unreadableIfUnopened(err error) error {
	var unopened *table.UnopenedError
	if errors.As(err, &unopened) {
		return &unreadableError{err}
	}
	return err
}
