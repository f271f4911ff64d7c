// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// shown returns what the column STATE shows of a state.
func shown(state string) string { return summary.Cut(state, 80) }

// tierPatch is a spec with a patch that applies only if worker has the annotation tier.
const tierPatch = apiAndWorker + `  patches:
  - target: {kind: Deployment, name: worker}
    type: JSON6902
    patch: '[{"op": "replace", "path": "/spec/template/metadata/annotations/tier", "value": "team"}]'
`

const (
	withTier    = `{"spec":{"template":{"metadata":{"annotations":{"tier":"production"}}}}}`
	withoutTier = `{"spec":{"template":{"metadata":{"annotations":null},"spec":{"containers":[{"name":"main","image":"shop/worker:2"}]}}}}`

	doesNotFit = `apply patches[0] (JSON6902) to Deployment "worker": ` +
		`operation [0] (replace /spec/template/metadata/annotations/tier): the object does not have that path`
)

// testRecordStates brings records into every state, with valid transitions only.
func (s *testCluster) testRecordStates(t *testing.T) {
	c := s.newFixture(t, "lived")
	defer s.setBatchWindow(t, shortWindow)
	s.applySyncPolicy(t, "retry: {maxAttempts: 2, backoff: 1h, maxBackoff: 1h}")
	states := c.watchStates(t)
	c.newCatalog(t, "shop")
	first := c.waitForRecords(t, "shop", 1).Name
	c.testDismiss(t, first)
	c.testFailedEdit(t, states, first)
	c.testAutomaticRetry(t, states)
	c.testGivenUp(t, states)
	states.expectComplete(t)
}

// testDismiss dismisses a record of an applied change. It cannot be retried before or after.
func (c *fixture) testDismiss(t *testing.T, record string) {
	t.Helper()
	c.expectConflict(t, record, "retry",
		"that is Applied cannot become Retrying, only Dismissed; Retrying follows Failed or ManualIntervention")
	c.mustRequest(t, record, "dismiss", "Dismissed; nothing else has changed")
	c.waitForState(t, record, v1alpha1.SyncStateDismissed)
	c.mustRequest(t, record, "dismiss", "eve has dismissed it already")
	c.expectConflict(t, record, "retry",
		"that is Dismissed cannot become Retrying: nothing follows Dismissed; Retrying follows Failed or ManualIntervention")
}

// testFailedEdit makes an edit that does not apply to the source, and retries it without success, and with success once it
// applies. The records of one second have no order: the failed one of two is not the first one.
func (c *fixture) testFailedEdit(t *testing.T, states *recordStates, first string) {
	t.Helper()
	c.edit(t, "shop", tierPatch)
	c.waitForRecords(t, "shop", 2)
	record := states.waitForFailure(t)
	if record == first {
		t.Errorf("failed record = %s, which is that of the new catalog", record)
	}
	c.expectConflict(t, record, "dismiss", "that is Failed cannot become Dismissed, only ManualIntervention or Retrying")
	c.mustRequest(t, record, "retry", "Attempt 2 is under way; status.state says what comes of it")
	c.waitForState(t, record, v1alpha1.SyncStateManualIntervention)
	states.expect(t, record, v1alpha1.SyncStateFailed, v1alpha1.SyncStateRetrying, v1alpha1.SyncStateFailed,
		v1alpha1.SyncStateManualIntervention)
	c.expectColumns(t, map[string]string{"STATE": shown("Needs a decision: " + doesNotFit), "BY": "eve", "ATTEMPTS": "2"}, "ss", record)
	c.expectColumns(t, map[string]string{
		"REVISION": "1", "READY": "False", "STATE": shown(doesNotFit), "REASON": v1alpha1.ReasonPatchFailed,
	}, "cat", "shop")
	c.waitForWarning(t, "Needs a decision: "+doesNotFit)
	c.expectImages(t, "shop", map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})

	c.change(t, c.ann, "worker", withTier)
	c.mustRequest(t, record, "retry", "Attempt 3 is under way; status.state says what comes of it")
	c.waitForState(t, record, v1alpha1.SyncStateApplied)
}

// testAutomaticRetry makes a change of the source fail. The server must retry it automatically until it succeeds.
func (c *fixture) testAutomaticRetry(t *testing.T, states *recordStates) {
	t.Helper()
	c.applySyncPolicy(t, "retry: {maxAttempts: 100, backoff: 1s, maxBackoff: 1s}")
	c.change(t, c.bob, "worker", withoutTier)
	record := states.waitForFailure(t)
	c.change(t, c.ann, "worker", withTier)
	c.waitForState(t, record, v1alpha1.SyncStateAutoApplied)
	c.eve.Ready(t, c.team, "cat/shop")
	c.expectColumns(t, map[string]string{"STATE": "Up to date", "REASON": v1alpha1.ReasonSucceeded}, "cat", "shop")
	c.expectImages(t, "shop", map[string]string{"api": "shop/api:1", "worker": "shop/worker:2"})
	c.expectConflict(t, record, "retry", "that is AutoApplied cannot become Retrying, only Dismissed")
}

// testGivenUp makes a change of the source fail until the server gives up, and dismisses it.
func (c *fixture) testGivenUp(t *testing.T, states *recordStates) {
	t.Helper()
	c.applySyncPolicy(t, "retry: {maxAttempts: 3, backoff: 1s, maxBackoff: 1s}")
	c.change(t, c.bob, "worker", withoutTier)
	record := states.waitForFailure(t)
	c.waitForState(t, record, v1alpha1.SyncStateManualIntervention)
	c.mustRequest(t, record, "dismiss", "Dismissed; nothing else has changed")
	states.expect(t, record, v1alpha1.SyncStateFailed, v1alpha1.SyncStateRetrying, v1alpha1.SyncStateFailed, v1alpha1.SyncStateRetrying,
		v1alpha1.SyncStateFailed, v1alpha1.SyncStateManualIntervention, v1alpha1.SyncStateDismissed)
	c.expectColumns(t, map[string]string{"STATE": "Dismissed by eve", "ATTEMPTS": "3"}, "ss", record)
	c.expectImages(t, "shop", map[string]string{"api": "shop/api:1", "worker": "shop/worker:2"})
}

// applySyncPolicy applies a SyncPolicy with a short window and more lines.
func (s *testCluster) applySyncPolicy(t *testing.T, lines ...string) {
	t.Helper()
	s.Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: SyncPolicy
metadata: {name: default}
spec:
  batchWindow: %s
  %s
`, shortWindow, strings.Join(lines, "\n  ")))
	mirrortest.Eventually(t, "the SyncPolicy is effective", func(ctx context.Context) error {
		out, err := s.Try.Field(ctx, "", "syncpolicy/default", "{.metadata.generation}-{.status.observedGeneration}")
		if generation, observed, _ := strings.Cut(out, "-"); err == nil && generation != observed {
			err = fmt.Errorf("generation %s, observed %s", generation, observed)
		}
		return err
	})
}

// path returns the path of an object in the team's namespace, or of its subresource.
func (c *fixture) path(object string) string {
	return "/apis/configbutler.ai/v1alpha1/namespaces/" + c.team + "/" + object
}

// request creates a subresource of an object in the team's namespace with kubectl.
func (c *fixture) request(ctx context.Context, by *people.Person, path, body string) (v1alpha1.RequestOutcome, error) {
	return outcome(by.Kubectl.Feed(ctx, body, "create", "--raw", c.path(path), "-f", "-"))
}

// outcome returns the outcome in a response.
func outcome(out string, err error) (v1alpha1.RequestOutcome, error) {
	var response struct{ Status v1alpha1.RequestOutcome }
	if err == nil {
		err = json.Unmarshal([]byte(out), &response)
	}
	return response.Status, err
}

// mustRequest makes a request of eve for a record, and expects its message.
func (c *fixture) mustRequest(t *testing.T, record, subresource, message string) {
	t.Helper()
	status, err := outcome(c.eve.Try.Post(t.Context(), c.path("syncstatuses/"+record+"/"+subresource), "{}"))
	if err != nil || !status.Accepted || status.Message != message {
		t.Fatalf("%s returned %+v: %v", subresource, status, err)
	}
}

// expectConflict makes a request of eve for a record that its state does not allow.
func (c *fixture) expectConflict(t *testing.T, record, subresource, message string) {
	t.Helper()
	_, err := c.request(t.Context(), c.eve, "syncstatuses/"+record+"/"+subresource, "{}")
	if err == nil || !strings.Contains(err.Error(), "(Conflict)") || !strings.Contains(err.Error(), message) {
		t.Errorf("%s of %s: %v, want %s", subresource, record, err, message)
	}
}

// waitForState waits until a record has a state.
func (c *fixture) waitForState(t *testing.T, record string, state v1alpha1.SyncState) {
	t.Helper()
	c.eve.HasField(t, c.team, "syncstatus/"+record, "{.status.state}", string(state))
}
