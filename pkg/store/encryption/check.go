// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
)

// checkedRows is the maximum number of rows of a part that are decrypted until one succeeds.
const checkedRows = pageRows

// Check decrypts a row of each part, so that a configuration of other stores is detected before any other use of it. Rows
// that cannot be decrypted while another one can are damaged, or encrypted with a missing key, and do not prevent serving
// the others. It skips rows that need a KMS plugin, which may start later than the server.
func (e *Encrypter) Check(ctx context.Context, parts ...Rows) error {
	for _, rows := range parts {
		if err := e.checkPart(ctx, rows); err != nil {
			return err
		}
	}
	return nil
}

// checkPart returns the error of the first row unless one of the first rows can be decrypted.
func (e *Encrypter) checkPart(ctx context.Context, rows Rows) error {
	var first error
	checked := 0
	for row, err := range rows.scan(ctx) {
		if err != nil {
			return err
		}
		if err = e.check(ctx, rows, row); err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
		if checked++; checked == checkedRows {
			break
		}
	}
	return first
}

// CheckAll is [Encrypter.Check] for every row.
func (e *Encrypter) CheckAll(ctx context.Context, parts ...Rows) error {
	for _, rows := range parts {
		for row, err := range rows.scan(ctx) {
			if err != nil {
				return err
			}
			if err := e.check(ctx, rows, row); err != nil {
				return err
			}
		}
	}
	return nil
}

// check decrypts a row. The error names the row and the key that it needs.
func (e *Encrypter) check(ctx context.Context, rows Rows, row *mvccpb.KeyValue) error {
	if encryptedByPlugin(row.Value) {
		return nil
	}
	if _, _, err := e.decrypt(ctx, rows, row); err != nil {
		return fmt.Errorf("decrypting %s with %s: %w", row.Key, e.config.Origin, explain(row.Value, err))
	}
	return nil
}

// Try loads a configuration only to test what it decrypts: it is not reloaded, and not reported by metrics as the active
// one. Its resources are released when ctx ends.
func Try(ctx context.Context, origin Origin) (*Encrypter, error) {
	s := &Encrypter{config: Config{Origin: origin}}
	content, err := origin.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the encryption configuration: %w", err)
	}
	loaded, _, err := s.load(ctx, content)
	if err != nil {
		return nil, err
	}
	s.content.Store(&content)
	s.transformers = encryptionconfig.StaticTransformers(loaded.Transformers)
	return s, nil
}
