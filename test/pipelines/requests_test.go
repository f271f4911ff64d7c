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
	"github.com/configbutler/slipstream/test/people"
)

// all is the body that asks for everything, full for everything once more.
const (
	all  = "{}"
	full = `{"spec":{"full":true}}`
)

// scoped is the body that asks for a scope.
func scoped(scope v1alpha1.PipelineScope) string { return fmt.Sprintf(`{"spec":{"scope":%q}}`, scope) }

// request asks for a run.
func (c *scene) request(ctx context.Context, by *people.Person, body string) (v1alpha1.PipelineSync, error) {
	var answer v1alpha1.PipelineSync
	out, err := by.Kubectl.Feed(ctx, body, "create", "--raw", "/apis/configbutler.ai/v1alpha1/syncpipelines/"+c.name+"/sync", "-f", "-")
	if err == nil {
		err = json.Unmarshal([]byte(out), &answer)
	}
	return answer, err
}

// asks asks for a run, and returns its id.
func (c *scene) asks(t *testing.T, body string) string {
	t.Helper()
	answer, err := c.request(t.Context(), c.eve, body)
	if err != nil || !answer.Status.Accepted || answer.Status.Message == "" || answer.Status.ID == "" {
		t.Fatalf("%s is answered with %+v: %v", body, answer.Status, err)
	}
	return answer.Status.ID
}

// synced asks for a run and waits until it has finished.
func (c *scene) synced(t *testing.T, body string) *v1alpha1.PipelineRun {
	t.Helper()
	return c.finishes(t, c.asks(t, body))
}

// finishes waits until a run has finished.
func (c *scene) finishes(t *testing.T, id string) *v1alpha1.PipelineRun {
	t.Helper()
	return c.becomes(t, "has finished "+id, func(p *v1alpha1.SyncPipeline) error {
		if p.Status.LastRun == nil || p.Status.LastRun.ID != id {
			return errors.New("it has not")
		}
		return nil
	}).Status.LastRun
}

// refused asks for a run and is refused.
func (c *scene) refused(t *testing.T, by *people.Person, body string, sentences ...string) {
	t.Helper()
	answer, err := c.request(t.Context(), by, body)
	if err == nil {
		t.Fatalf("%s is answered with %+v", body, answer.Status)
	}
	contains(t, err.Error(), sentences...)
}

// contains expects sentences in a text.
func contains(t *testing.T, text string, sentences ...string) {
	t.Helper()
	for _, want := range sentences {
		if !strings.Contains(text, want) {
			t.Errorf("it says %q, want %q in it", text, want)
		}
	}
}
