// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The flush goroutine of klog does not end.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}
