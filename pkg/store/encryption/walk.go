// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
)

// progressInterval is the interval at which a walk logs its progress.
const progressInterval = 10 * time.Second

// outcome is the result of a walk.
type outcome struct {
	seen int
	// rewritten is the number of rewritten rows, left that of rows that were changed concurrently.
	rewritten, left int
	// unreadable is the number of rows that cannot be decrypted.
	unreadable int
}

// clean reports whether every row was already encrypted with the key for writing.
func (o outcome) clean() bool { return o.rewritten+o.left+o.unreadable == 0 }

func (o *outcome) add(other outcome) {
	o.seen += other.seen
	o.rewritten += other.rewritten
	o.left += other.left
	o.unreadable += other.unreadable
}

// walker rewrites rows that are not encrypted with the key for writing, at a limited rate.
type walker struct {
	encrypter *Encrypter
	pace      flowcontrol.RateLimiter
}

// walk checks all rows of a part once. It may be interrupted at any row: the next walk finds the rewritten rows up to date.
func (w walker) walk(ctx context.Context, rows Rows) (outcome, error) {
	found := outcome{}
	logger := klog.FromContext(ctx).WithValues("store", rows.name)
	began, reported := time.Now(), time.Now()
	for row, err := range rows.scan(ctx) {
		if err != nil {
			return found, err
		}
		if err := w.visit(ctx, rows, row, &found); err != nil {
			return found, err
		}
		if time.Since(reported) > progressInterval {
			reported = time.Now()
			logger.Info("Re-encrypting stored rows with the key for writing",
				"seen", found.seen, "rewritten", found.rewritten, "at", string(row.Key))
		}
	}
	staleRows.WithLabelValues(rows.name).Set(float64(found.left))
	walked.WithLabelValues(rows.name).Set(float64(began.Unix()))
	if !found.clean() {
		logger.Info("Re-encrypted stored rows with the key for writing", "seen", found.seen,
			"rewritten", found.rewritten, "changedMeanwhile", found.left, "unreadable", found.unreadable)
	}
	return found, nil
}

// visit checks one row.
func (w walker) visit(ctx context.Context, rows Rows, row *mvccpb.KeyValue, found *outcome) error {
	found.seen++
	plain, stale, err := w.encrypter.decrypt(ctx, rows, row)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		found.unreadable++
		klog.FromContext(ctx).Error(explain(row.Value, err), "A stored row cannot be decrypted", "key", string(row.Key))
		return nil
	case !stale:
		return nil
	}
	if err := w.pace.Wait(ctx); err != nil {
		return err
	}
	done, err := w.rewrite(ctx, rows, row, plain)
	if err != nil {
		return fmt.Errorf("re-encrypting %s: %w", row.Key, err)
	}
	if !done {
		found.left++
		return nil
	}
	found.rewritten++
	rewrittenRows.WithLabelValues(rows.name).Inc()
	return nil
}

// rewrite encrypts a row again unless it has changed since it was read.
func (w walker) rewrite(ctx context.Context, rows Rows, row *mvccpb.KeyValue, plain []byte) (bool, error) {
	key := string(row.Key)
	encrypted, err := w.encrypter.transformers.TransformerForResource(rows.resource(key)).
		TransformToStorage(ctx, plain, value.DefaultContext(key))
	if err != nil {
		return false, err
	}
	answer, err := rows.kv.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", row.ModRevision)).
		Then(clientv3.OpPut(key, string(encrypted), clientv3.WithLease(clientv3.LeaseID(row.Lease)))).
		Commit()
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return false, nil // The lease has expired, and the row is deleted.
	}
	if err != nil {
		return false, err
	}
	return answer.Succeeded, nil
}
