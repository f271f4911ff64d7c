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
	"github.com/configbutler/slipstream/test/people"
)

// tierPatch are the lines of a spec with a patch that fits a worker whose pods have the annotation tier.
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

// lived has records come to every state, and to none in a way that the table of states has not.
func (s *stage) lived(t *testing.T) {
	c := s.newScene(t, "lived")
	defer s.gather(t, shortWindow)
	s.govern(t, "retry: {maxAttempts: 2, backoff: 1h, maxBackoff: 1h}")
	lives := c.follow(t)
	c.newCatalog(t, "shop")
	c.putAside(t, c.recorded(t, "shop", 1).Name)
	c.failEdit(t, lives)
	c.failAndPass(t, lives)
	c.failForGood(t, lives)
	lives.complete(t)
}

// putAside dismisses a record of what has been done. It is not tried again before and after.
func (c *scene) putAside(t *testing.T, record string) {
	t.Helper()
	c.conflicts(t, record, "retry", "that is Applied cannot become Retrying, only Dismissed; Retrying follows Failed or ManualIntervention")
	c.say(t, record, "dismiss", "Dismissed; nothing else has changed")
	c.comesTo(t, record, v1alpha1.SyncStateDismissed)
	c.say(t, record, "dismiss", "eve has dismissed it already")
	c.conflicts(t, record, "retry", "that is Dismissed cannot become Retrying: nothing follows Dismissed; Retrying follows Failed or ManualIntervention")
}

// failEdit has eve edit the catalog so that it does not fit production, and try again in vain, and once production fits.
func (c *scene) failEdit(t *testing.T, lives *lives) {
	t.Helper()
	c.edit(t, "shop", tierPatch)
	record := c.recorded(t, "shop", 2).Name
	if failed := lives.failed(t); failed != record {
		t.Errorf("%s has failed, want %s", failed, record)
	}
	c.conflicts(t, record, "dismiss", "that is Failed cannot become Dismissed, only ManualIntervention or Retrying")
	c.say(t, record, "retry", "Attempt 2 is under way; status.state says what comes of it")
	c.comesTo(t, record, v1alpha1.SyncStateManualIntervention)
	lives.expect(t, record, v1alpha1.SyncStateFailed, v1alpha1.SyncStateRetrying, v1alpha1.SyncStateFailed, v1alpha1.SyncStateManualIntervention)
	c.reads(t, map[string]string{"STATE": "Needs someone: " + doesNotFit, "BY": "eve", "ATTEMPTS": "2"}, "ss", record)
	c.reads(t, map[string]string{"REVISION": "1", "READY": "False", "STATE": doesNotFit, "REASON": v1alpha1.ReasonPatchFailed}, "cat", "shop")
	c.warned(t, "Needs someone: "+doesNotFit)
	c.offers(t, "shop", map[string]string{"api": "shop/api:1", "worker": "shop/worker:1"})

	c.change(t, c.ann, "worker", withTier)
	c.say(t, record, "retry", "Attempt 3 is under way; status.state says what comes of it")
	c.comesTo(t, record, v1alpha1.SyncStateApplied)
}

// failAndPass has production not fit for a while: the server finds out by itself when it does again.
func (c *scene) failAndPass(t *testing.T, lives *lives) {
	t.Helper()
	c.govern(t, "retry: {maxAttempts: 100, backoff: 1s, maxBackoff: 1s}")
	c.change(t, c.bob, "worker", withoutTier)
	record := lives.failed(t)
	c.change(t, c.ann, "worker", withTier)
	c.comesTo(t, record, v1alpha1.SyncStateAutoApplied)
	c.eve.Run(t, "wait", "cat/shop", "-n", c.team, "--for=condition=Ready", "--timeout=180s")
	c.reads(t, map[string]string{"STATE": "Up to date", "REASON": v1alpha1.ReasonSucceeded}, "cat", "shop")
	c.offers(t, "shop", map[string]string{"api": "shop/api:1", "worker": "shop/worker:2"})
	c.conflicts(t, record, "retry", "that is AutoApplied cannot become Retrying, only Dismissed")
}

// failForGood has production not fit until nobody tries any more, and eve puts that aside.
func (c *scene) failForGood(t *testing.T, lives *lives) {
	t.Helper()
	c.govern(t, "retry: {maxAttempts: 3, backoff: 1s, maxBackoff: 1s}")
	c.change(t, c.bob, "worker", withoutTier)
	record := lives.failed(t)
	c.comesTo(t, record, v1alpha1.SyncStateManualIntervention)
	c.say(t, record, "dismiss", "Dismissed; nothing else has changed")
	lives.expect(t, record, v1alpha1.SyncStateFailed, v1alpha1.SyncStateRetrying, v1alpha1.SyncStateFailed, v1alpha1.SyncStateRetrying,
		v1alpha1.SyncStateFailed, v1alpha1.SyncStateManualIntervention, v1alpha1.SyncStateDismissed)
	c.reads(t, map[string]string{"STATE": "Dismissed by eve", "ATTEMPTS": "3"}, "ss", record)
	c.offers(t, "shop", map[string]string{"api": "shop/api:1", "worker": "shop/worker:2"})
}

// govern sets what all catalogs share, with a short window.
func (s *stage) govern(t *testing.T, lines ...string) {
	t.Helper()
	s.Apply(t, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: SyncPolicy
metadata: {name: default}
spec:
  batchWindow: %s
  %s
`, shortWindow, strings.Join(lines, "\n  ")))
}

// ask makes a request at a subresource of what is in the team's namespace.
func (c *scene) ask(ctx context.Context, by *people.Person, path, body string) (v1alpha1.RequestOutcome, error) {
	var answer struct{ Status v1alpha1.RequestOutcome }
	out, err := by.Kubectl.Feed(ctx, body, "create", "--raw", "/apis/configbutler.ai/v1alpha1/namespaces/"+c.team+"/"+path, "-f", "-")
	if err == nil {
		err = json.Unmarshal([]byte(out), &answer)
	}
	return answer.Status, err
}

// say has eve say something of a record, and expects the answer.
func (c *scene) say(t *testing.T, record, what, message string) {
	t.Helper()
	answer, err := c.ask(t.Context(), c.eve, "syncstatuses/"+record+"/"+what, "{}")
	if err != nil || !answer.Accepted || answer.Message != message {
		t.Fatalf("%s: answered with %+v: %v", what, answer, err)
	}
}

// conflicts has eve say something of a record whose state does not allow it.
func (c *scene) conflicts(t *testing.T, record, what, message string) {
	t.Helper()
	_, err := c.ask(t.Context(), c.eve, "syncstatuses/"+record+"/"+what, "{}")
	if err == nil || !strings.Contains(err.Error(), "(Conflict)") || !strings.Contains(err.Error(), message) {
		t.Errorf("%s of %s: %v, want %s", what, record, err, message)
	}
}

// comesTo waits as a user does.
func (c *scene) comesTo(t *testing.T, record string, state v1alpha1.SyncState) {
	t.Helper()
	c.eve.Run(t, "wait", "syncstatus/"+record, "-n", c.team, "--for=jsonpath={.status.state}="+string(state), "--timeout=180s")
}
