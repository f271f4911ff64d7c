// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/devcluster"
)

// environmentIn is an environment of the catalog of catalogIn, in a namespace of its own.
func environmentIn(namespace string) string {
	return fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: Environment
metadata: {namespace: %s, name: alice}
spec: {catalogRef: {name: shop}, targetNamespace: %s-alice, createNamespace: true}
`, namespace, namespace)
}

// testEnvironmentEdits has it from the answers of the requests, as testEdits has.
func testEnvironmentEdits(t *testing.T, s *stage) {
	namespace := s.namespace(t, "environment-edits")
	jane, joe := s.ordinary(t, "jane"), s.ordinary(t, "joe")
	for _, user := range []string{"jane", "joe"} {
		s.grant(t, user, namespace, "environments-"+user, "get,list,create,update,patch", "environments.configbutler.ai,environments.configbutler.ai/status")
	}
	answer := "jsonpath={.status.pendingEdits[-1:].generation} {.status.pendingEdits[-1:].actor} {.status.pendingEdits[-1:].fields} " +
		"{.status.automatedBy.username}"
	forged := environmentIn(namespace) + "status: {automatedBy: {username: somebody-else, time: \"2026-01-01T00:00:00Z\"}}\n"
	created, err := jane.Feed(t.Context(), forged, "create", "-f", "-", "-o", answer)
	if err != nil {
		t.Fatal(err)
	}
	if created != "1 jane  " {
		t.Errorf("the newest edit is %q after jane has created the environment, want 1 jane", created)
	}
	patch := func(kubectl devcluster.Kubectl, change string, more ...string) (string, error) {
		arguments := []string{"patch", "environment", "alice", "-n", namespace, "--type=merge", "-p", change, "-o", answer}
		return kubectl.Run(t.Context(), append(arguments, more...)...)
	}
	for _, step := range []struct {
		who          devcluster.Kubectl
		change, want string
	}{
		{joe, `{"spec":{"autoSync":true}}`, `2 joe ["autoSync"] joe`},
		{jane, `{"spec":{"ttl":"72h","historyLimit":5}}`, `3 jane ["historyLimit","ttl"] joe`},
		{joe, `{"spec":{"autoSync":false}}`, `4 joe ["autoSync"] `},
	} {
		edited, err := patch(step.who, step.change)
		if err != nil {
			t.Fatal(err)
		}
		if edited != step.want {
			t.Errorf("%s: answered with %q, want %q", step.change, edited, step.want)
		}
	}
	for field, forgery := range map[string]string{
		"status.automatedBy":        `{"automatedBy":{"username":"jane","time":"2026-01-01T00:00:00Z"}}`,
		"status.pendingRequests[0]": `{"pendingRequests":[{"id":"1","actor":"jane","time":"2026-01-01T00:00:00Z","type":"Rediscover"}]}`,
	} {
		_, err := patch(joe, `{"status":`+forgery+`}`, "--subresource=status")
		if err == nil || !strings.Contains(err.Error(), field+": Forbidden: only the server") {
			t.Errorf("joe writes %s: %v, want an error about %s", forgery, err, field)
		}
	}
}
