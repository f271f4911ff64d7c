// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
)

// checkedRows is how many rows of a part are opened, at most, until one opens.
const checkedRows = pageRows

// Check opens a row of each part, so that a configuration that belongs to other stores is found out before
// anything else is done with it. Rows that do not open while another one does are damaged, or encrypted under a key that
// is missing, and no reason not to serve the others. It leaves rows alone that take a KMS plugin, which may start later
// than the server.
func (s *Encrypter) Check(ctx context.Context, parts ...Rows) error {
	for _, rows := range parts {
		if err := s.checkPart(ctx, rows); err != nil {
			return err
		}
	}
	return nil
}

// checkPart fails with what is wrong with the first row unless one of the first rows opens.
func (s *Encrypter) checkPart(ctx context.Context, rows Rows) error {
	var first error
	checked := 0
	for row, err := range rows.scan(ctx) {
		if err != nil {
			return err
		}
		if err = s.check(ctx, rows, row); err == nil {
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

// CheckAll is [Encrypter.Check] of every row.
func (s *Encrypter) CheckAll(ctx context.Context, parts ...Rows) error {
	for _, rows := range parts {
		for row, err := range rows.scan(ctx) {
			if err != nil {
				return err
			}
			if err := s.check(ctx, rows, row); err != nil {
				return err
			}
		}
	}
	return nil
}

// check opens a row. The error names the row and the key that it takes.
func (s *Encrypter) check(ctx context.Context, rows Rows, row *mvccpb.KeyValue) error {
	if encryptedByPlugin(row.Value) {
		return nil
	}
	if _, _, err := s.open(ctx, rows, row); err != nil {
		return fmt.Errorf("opening %s with %s: %w", row.Key, s.config.Origin, explain(row.Value, err))
	}
	return nil
}

// Try loads a configuration only to see what it opens: its changes are not followed, and no metric takes it for the
// one in force. What it loads lives as long as ctx.
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
