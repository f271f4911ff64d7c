// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// checkTimeout bounds a health check.
const checkTimeout = 2 * time.Second

// Check reports whether the engine works: it reads, and sends a request that writes nothing through the committer. It
// fails if the engine refuses writes after a failed commit.
func (e *Engine) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if err := usable(ctx, e.stop); err != nil {
		return err
	}
	if err := e.committer.commit(ctx, probe{}, 0); err != nil && !errors.Is(err, errProbed) {
		return fmt.Errorf("store does not accept writes: %w", err)
	}
	return nil
}

var errProbed = errors.New("probed")

// probe is a mutation that changes nothing.
type probe struct{}

func (probe) check(*writer) error { return errProbed }
func (probe) write(*writer) error { return nil }
