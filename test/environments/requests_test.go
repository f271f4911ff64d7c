// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/mirrortest"
	"github.com/configbutler/slipstream/test/people"
)

// all is the body that asks for everything.
const all = "{}"

// ask makes a request at a subresource of an environment, or of another of the team's objects, as in environments/alice/sync.
func (c *scene) ask(ctx context.Context, by *people.Person, path, body string) (v1alpha1.SyncRequestStatus, error) {
	var answer struct{ Status v1alpha1.SyncRequestStatus }
	out, err := by.Kubectl.Feed(ctx, body, "create", "--raw", c.path(path), "-f", "-")
	if err == nil {
		err = json.Unmarshal([]byte(out), &answer)
	}
	return answer.Status, err
}

func (c *scene) path(rest string) string {
	return "/apis/configbutler.ai/v1alpha1/namespaces/" + c.team + "/" + rest
}

// asks makes a request that is accepted.
func (c *scene) asks(t *testing.T, by *people.Person, path, body string) v1alpha1.SyncRequestStatus {
	t.Helper()
	answer, err := c.ask(t.Context(), by, path, body)
	if err != nil || !answer.Accepted || answer.Message == "" {
		t.Fatalf("%s is answered with %+v: %v", path, answer, err)
	}
	return answer
}

// sync asks for a sync, and returns the record of the run.
func (c *scene) sync(t *testing.T, environment, body string) string {
	t.Helper()
	answer := c.asks(t, c.dave, "environments/"+environment+"/sync", body)
	if len(answer.SyncStatuses) == 0 {
		t.Fatalf("no record tells what becomes of it: %+v", answer)
	}
	return answer.SyncStatuses[0]
}

// synced has a sync done.
func (c *scene) synced(t *testing.T, environment, body string) *v1alpha1.SyncStatus {
	t.Helper()
	return c.rests(t, c.sync(t, environment, body), v1alpha1.SyncStateCompleted)
}

// refused makes a request that is refused for a reason and with sentences.
func (c *scene) refused(t *testing.T, by *people.Person, path, body, reason string, sentences ...string) {
	t.Helper()
	answer, err := c.ask(t.Context(), by, path, body)
	if err == nil {
		t.Fatalf("%s is answered with %+v", path, answer)
	}
	if reason == "Invalid" {
		reason = " is invalid: " // So kubectl has it, and other reasons in brackets.
	} else {
		reason = "(" + reason + ")"
	}
	for _, want := range append(sentences, reason) {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s by %s is refused with %v, want %q in it", path, by.Name, err, want)
		}
	}
}

var gaps = regexp.MustCompile(` {2,}`)

// cell is what kubectl prints of one object under the name of a column.
func cell(ctx context.Context, by *people.Person, column string, arguments ...string) (string, error) {
	out, err := by.Kubectl.Run(ctx, append([]string{"get"}, arguments...)...)
	if err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	at := slices.Index(gaps.Split(lines[0], -1), column)
	if row := gaps.Split(lines[len(lines)-1], -1); len(lines) == 2 && at >= 0 && at < len(row) {
		return row[at], nil
	}
	return "", fmt.Errorf("no %s in\n%s", column, out)
}

// says waits until kubectl prints a STATE of an environment that begins as given.
func (c *scene) says(t *testing.T, environment, state string) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("environment %s says %q", environment, state), func(ctx context.Context) error {
		got, err := cell(ctx, c.dave, "STATE", "envt", environment, "-n", c.team)
		if err == nil && !strings.HasPrefix(got, state) {
			err = fmt.Errorf("it says %q: %s", got, c.tell(ctx))
		}
		return err
	})
}
