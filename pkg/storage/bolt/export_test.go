// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

// SkipSync makes writes faster and no longer durable, for tests that never lose
// power. It must be called before the first write.
func (e *Engine) SkipSync() { e.db.NoSync = true }
