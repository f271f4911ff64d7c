// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/configbutler/slipstream/pkg/attribution"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// Lags returns the lags that StoreLags has stored last for a controller; none if it has not.
func (l *Log) Lags(ctx context.Context, controller string) (attribution.Lags, error) {
	value, found, err := l.lags.Get(ctx, controller)
	if err != nil || !found {
		return attribution.Lags{}, err
	}
	var lags attribution.Lags
	if err := json.Unmarshal(value, &lags); err != nil {
		return attribution.Lags{}, fmt.Errorf("decoding the lags of the controller %s: %w", controller, err)
	}
	return lags, nil
}

// StoreLags stores the lags of a controller.
func (l *Log) StoreLags(ctx context.Context, controller string, lags attribution.Lags) error {
	value, err := json.Marshal(lags)
	if err != nil {
		return fmt.Errorf("encoding the lags of the controller %s: %w", controller, err)
	}
	return l.lags.Put(ctx, table.Row{Key: controller, Value: value})
}
