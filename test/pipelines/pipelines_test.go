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
	run  func(*testCluster, *testing.T)
}

// TestPipelines runs its subtests on one cluster: first those that can run in parallel, then those that restart the server, need
// its full capacity, or change the shared SyncPolicy.
func TestPipelines(t *testing.T) {
	t.Parallel()
	s := newTestCluster(t, people.Pipelines)
	resync := s.beginResync(t) // Its interval passes during the other subtests.
	t.Run("Parallel", func(t *testing.T) {
		for _, p := range []testCase{
			{"Formats", (*testCluster).testFormats},
			{"Changes", (*testCluster).testChanges},
			{"Debounce", (*testCluster).testDebounce},
			{"Batches", (*testCluster).testBatches},
			{"Versions", (*testCluster).testVersions},
			{"Recovery", (*testCluster).testRecovery},
			{"Rejection", (*testCluster).testRejection},
			{"MaxAttempts", (*testCluster).testMaxAttempts},
			{"RetryAfterLostResponse", (*testCluster).testRetryAfterLostResponse},
			{"ForbiddenDestinations", (*testCluster).testForbiddenDestinations},
			{"Requests", (*testCluster).testRequests},
			{"Credentials", (*testCluster).testCredentials},
			{"Certificates", (*testCluster).testCertificates},
			{"Jobs", (*testCluster).testJobs},
			{"Suspend", (*testCluster).testSuspend},
			{"Poll", (*testCluster).testPoll},
			{"ChangedSinks", (*testCluster).testChangedSinks},
			{"IndependentPipelines", (*testCluster).testIndependentPipelines},
			{"SharedPipeline", (*testCluster).testSharedPipeline},
			{"Status", (*testCluster).testStatus},
			{"Permissions", (*testCluster).testPermissions},
			{"SecretContent", (*testCluster).testSecretContent},
		} {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				p.run(s, t)
			})
		}
	})
	t.Run("Resync", resync.testResync)
	for _, p := range []testCase{
		{"Selection", (*testCluster).testSelection}, // Watches all types, also those of others; Poll checks that its type is not watched.
		{"PermissionLost", (*testCluster).testPermissionLost},
		{"SuspendedByPolicy", (*testCluster).testSuspendedByPolicy},
		{"Restart", (*testCluster).testRestart},
		{"InterruptedRun", (*testCluster).testInterruptedRun},
		{"ManyDefinitions", (*testCluster).testManyDefinitions},
	} {
		t.Run(p.name, func(t *testing.T) { p.run(s, t) })
	}
}

// TestMinimalPermissions uses a server that can read only the types of its pipeline.
func TestMinimalPermissions(t *testing.T) {
	t.Parallel()
	newTestCluster(t).testMinimalPermissions(t)
}
