// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// klog's flusher is started by its package and has no end.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}
