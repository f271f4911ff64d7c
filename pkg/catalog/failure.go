// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncrecord"
)

// fail records that an occasion could not be carried out. Its record says from then on what becomes of it.
func (k *keeper) fail(ctx context.Context, t *task, failed *patchError) error {
	step := syncrecord.Step{
		To: v1alpha1.SyncStateFailed, At: k.clock.Now(), By: t.actor,
		Failure: &syncrecord.Failure{Reason: v1alpha1.ReasonPatchFailed, Message: failed.Error()},
	}
	var record *v1alpha1.SyncStatus
	var err error
	if t.record == nil {
		record, err = begun(t.catalog, t.occasion, t.name, step)
	} else {
		record, err = syncrecord.Move(t.record, step)
	}
	if err != nil {
		return fmt.Errorf("record that %w: %w", failed, err)
	}
	if err := k.write(ctx, record); err != nil {
		return err
	}
	return k.close(ctx, t, &verdict{v1alpha1.ReasonPatchFailed, failed.Error()})
}
