// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// all is the body of a sync request for everything.
const all = "{}"

// request creates a subresource of an environment or another object of the team, such as environments/alice/sync, with kubectl.
func (c *fixture) request(ctx context.Context, by *people.Person, path, body string) (v1alpha1.SyncRequestStatus, error) {
	return answer(by.Kubectl.Feed(ctx, body, "create", "--raw", c.path(path), "-f", "-"))
}

// answer returns the status in a response.
func answer(out string, err error) (v1alpha1.SyncRequestStatus, error) {
	var response struct{ Status v1alpha1.SyncRequestStatus }
	if err == nil {
		err = json.Unmarshal([]byte(out), &response)
	}
	return response.Status, err
}

func (c *fixture) path(rest string) string {
	return "/apis/configbutler.ai/v1alpha1/namespaces/" + c.team + "/" + rest
}

// mustRequest makes a request that must be accepted.
func (c *fixture) mustRequest(t *testing.T, by *people.Person, path, body string) v1alpha1.SyncRequestStatus {
	t.Helper()
	status, err := answer(by.Try.Post(t.Context(), c.path(path), body))
	if err != nil || !status.Accepted || status.Message == "" {
		t.Fatalf("%s returned %+v: %v", path, status, err)
	}
	return status
}

// sync requests a sync and returns the name of its record.
func (c *fixture) sync(t *testing.T, environment, body string) string {
	t.Helper()
	return c.syncBy(t, c.dave, environment, body)
}

// pendingID matches the message of a response to a request that is accepted, but was not processed in time.
var pendingID = regexp.MustCompile(`status\.pendingRequests .* under the id ([0-9a-f-]{36})`)

// syncBy requests a sync as a user and returns the name of its record, which the response lacks if the sync starts later.
func (c *fixture) syncBy(t *testing.T, by *people.Person, environment, body string) (record string) {
	t.Helper()
	status := c.mustRequest(t, by, "environments/"+environment+"/sync", body)
	if len(status.SyncStatuses) > 0 {
		return status.SyncStatuses[0]
	}
	found := pendingID.FindStringSubmatch(status.Message)
	if found == nil {
		t.Fatalf("sync request returned no record: %+v", status)
	}
	mirrortest.Eventually(t, "the record of the request "+found[1], func(ctx context.Context) error {
		list, err := c.dave.Own.ConfigbutlerV1alpha1().SyncStatuses(c.team).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, one := range list.Items {
			// An open record of dependencies becomes that of a request for them alone.
			joined := strings.Contains(body, `"Cluster"`) && one.Annotations[v1alpha1.AnnotationRequest] == found[1]
			if joined || one.Spec.Batch == found[1] {
				record = one.Name
				return nil
			}
		}
		return c.described(errors.New("no record"))
	})
	return record
}

// mustSync requests a sync and waits until it is completed.
func (c *fixture) mustSync(t *testing.T, environment, body string) *v1alpha1.SyncStatus {
	t.Helper()
	return c.waitForState(t, c.sync(t, environment, body), v1alpha1.SyncStateCompleted)
}

// expectRefused makes a request that must fail with a reason and messages.
func (c *fixture) expectRefused(t *testing.T, by *people.Person, path, body, reason string, sentences ...string) {
	t.Helper()
	status, err := c.request(t.Context(), by, path, body)
	if err == nil {
		t.Fatalf("%s returned %+v", path, status)
	}
	if reason == "Invalid" {
		reason = " is invalid: " // kubectl prints this reason differently from others.
	} else {
		reason = "(" + reason + ")"
	}
	for _, want := range append(sentences, reason) {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s by %s failed with %v, want %q", path, by.Name, err, want)
		}
	}
}

var gaps = regexp.MustCompile(` {2,}`)

// cell returns what kubectl prints for one object in a column.
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
	return "", fmt.Errorf("no column %s in\n%s", column, out)
}

// waitForStatus waits until kubectl prints a STATE of an environment with a prefix.
func (c *fixture) waitForStatus(t *testing.T, environment, state string) {
	t.Helper()
	mirrortest.Eventually(t, fmt.Sprintf("environment %s has the state %q", environment, state), func(ctx context.Context) error {
		// kubectl prints the state once the server does.
		got, err := c.dave.Try.Cell(ctx, c.team, "envt/"+environment, "STATE")
		if err == nil && strings.HasPrefix(got, state) {
			got, err = cell(ctx, c.dave, "STATE", "envt", environment, "-n", c.team)
		}
		if err == nil && !strings.HasPrefix(got, state) {
			err = c.described(fmt.Errorf("state %q", got))
		}
		return err
	})
}
