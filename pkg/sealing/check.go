// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sealing

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
)

// Check opens the first row of each part, so that a configuration that belongs to other stores is found out before
// anything else is done with it. It leaves rows alone that take a KMS plugin, which may start later than the server.
func (s *Sealer) Check(ctx context.Context, parts ...Rows) error {
	for _, rows := range parts {
		for row, err := range rows.scan(ctx) {
			if err != nil {
				return err
			}
			if err := s.check(ctx, rows, row); err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// CheckAll is [Sealer.Check] of every row.
func (s *Sealer) CheckAll(ctx context.Context, parts ...Rows) error {
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
func (s *Sealer) check(ctx context.Context, rows Rows, row *mvccpb.KeyValue) error {
	if sealedByPlugin(row.Value) {
		return nil
	}
	if _, _, err := s.open(ctx, rows, row); err != nil {
		return fmt.Errorf("opening %s with %s: %w", row.Key, s.config.Origin, explain(row.Value, err))
	}
	return nil
}

// Try loads a configuration only to see what it opens: its changes are not followed, and no metric takes it for the
// one in force. What it loads lives as long as ctx.
func Try(ctx context.Context, origin Origin) (*Sealer, error) {
	s := &Sealer{config: Config{Origin: origin}}
	content, err := origin.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the encryption configuration: %w", err)
	}
	loaded, _, err := s.load(ctx, content)
	if err != nil {
		return nil, err
	}
	s.transformers = encryptionconfig.StaticTransformers(loaded.Transformers)
	return s, nil
}
