// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"testing"

	"github.com/configbutler/slipstream/test/testkit/people"
)

// testCase is a subtest.
type testCase struct {
	name string
	run  func(*stage, *testing.T)
}

// TestPipelines runs its subtests on one cluster: first those that can run in parallel, then those that restart the server, need
// its full capacity, or change the shared SyncPolicy.
func TestPipelines(t *testing.T) {
	s := newStage(t, people.Pipelines)
	resync := s.beginResync(t) // Its interval passes during the other subtests.
	t.Run("Parallel", func(t *testing.T) {
		for _, p := range []testCase{
			{"Formats", (*stage).testFormats},
			{"Changes", (*stage).testChanges},
			{"Debounce", (*stage).testDebounce},
			{"Batches", (*stage).testBatches},
			{"Versions", (*stage).testVersions},
			{"Selection", (*stage).testSelection},
			{"Recovery", (*stage).testRecovery},
			{"Rejection", (*stage).testRejection},
			{"MaxAttempts", (*stage).testMaxAttempts},
			{"RetryAfterLostResponse", (*stage).testRetryAfterLostResponse},
			{"ForbiddenDestinations", (*stage).testForbiddenDestinations},
			{"Requests", (*stage).testRequests},
			{"Credentials", (*stage).testCredentials},
			{"Certificates", (*stage).testCertificates},
			{"Jobs", (*stage).testJobs},
			{"Suspend", (*stage).testSuspend},
			{"Poll", (*stage).testPoll},
			{"ChangedSinks", (*stage).testChangedSinks},
			{"IndependentPipelines", (*stage).testIndependentPipelines},
			{"SharedPipeline", (*stage).testSharedPipeline},
			{"Status", (*stage).testStatus},
			{"Permissions", (*stage).testPermissions},
			{"SecretContent", (*stage).testSecretContent},
		} {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				p.run(s, t)
			})
		}
	})
	t.Run("Resync", resync.testResync)
	for _, p := range []testCase{
		{"PermissionLost", (*stage).testPermissionLost},
		{"SuspendedByPolicy", (*stage).testSuspendedByPolicy},
		{"Restart", (*stage).testRestart},
		{"InterruptedRun", (*stage).testInterruptedRun},
		{"ManyDefinitions", (*stage).testManyDefinitions},
	} {
		t.Run(p.name, func(t *testing.T) { p.run(s, t) })
	}
}

// TestMinimalPermissions uses a server that can read only the types of its pipeline.
func TestMinimalPermissions(t *testing.T) {
	newStage(t).testMinimalPermissions(t)
}
