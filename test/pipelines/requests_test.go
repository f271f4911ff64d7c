// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// all is the body of a sync request for everything, full that of a full sync.
const (
	all  = "{}"
	full = `{"spec":{"full":true}}`
)

// scoped returns the body of a sync request with a scope.
func scoped(scope v1alpha1.PipelineScope) string { return fmt.Sprintf(`{"spec":{"scope":%q}}`, scope) }

// path returns the path of sync requests.
func (c *fixture) path() string {
	return "/apis/configbutler.ai/v1alpha1/syncpipelines/" + c.name + "/sync"
}

// request makes a sync request with kubectl.
func (c *fixture) request(ctx context.Context, by *people.Person, body string) (v1alpha1.PipelineSync, error) {
	return decoded(by.Kubectl.Feed(ctx, body, "create", "--raw", c.path(), "-f", "-"))
}

// decoded returns the response to a sync request.
func decoded(out string, err error) (sync v1alpha1.PipelineSync, _ error) {
	if err == nil {
		err = json.Unmarshal([]byte(out), &sync)
	}
	return sync, err
}

// mustRequest makes a sync request that must be accepted, and returns its id.
func (c *fixture) mustRequest(t *testing.T, body string) string {
	t.Helper()
	var sync v1alpha1.PipelineSync
	err := clustertest.Again(func() (err error) {
		sync, err = decoded(c.eve.Try.Post(t.Context(), c.path(), body))
		return err
	}, func(failure error) { t.Logf("repeated: %v", failure) })
	if err != nil || !sync.Status.Accepted || sync.Status.Message == "" || sync.Status.ID == "" {
		t.Fatalf("%s returned %+v: %v", body, sync.Status, err)
	}
	return sync.Status.ID
}

// mustSync requests a sync and waits until its run has finished.
func (c *fixture) mustSync(t *testing.T, body string) *v1alpha1.PipelineRun {
	t.Helper()
	return c.waitForRun(t, c.mustRequest(t, body))
}

// waitForRun waits until a run has finished.
func (c *fixture) waitForRun(t *testing.T, id string) *v1alpha1.PipelineRun {
	t.Helper()
	return c.waitFor(t, "has finished "+id, func(p *v1alpha1.SyncPipeline) error {
		if p.Status.LastRun == nil || p.Status.LastRun.ID != id {
			return errors.New("run has not finished")
		}
		return nil
	}).Status.LastRun
}

// expectRefused makes a sync request that must fail.
func (c *fixture) expectRefused(t *testing.T, by *people.Person, body string, texts ...string) {
	t.Helper()
	sync, err := c.request(t.Context(), by, body)
	if err == nil {
		t.Fatalf("%s returned %+v", body, sync.Status)
	}
	contains(t, err.Error(), texts...)
}

// contains expects a text to contain others.
func contains(t *testing.T, text string, texts ...string) {
	t.Helper()
	for _, want := range texts {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not contain %q", text, want)
		}
	}
}
