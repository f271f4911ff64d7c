// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// event waits for Events about an object (such as GitDestination/main) with a type and reason, and returns their messages.
func (s *testCluster) event(t *testing.T, namespace, object, kind, reason string) (messages string) {
	t.Helper()
	about, name, _ := strings.Cut(object, "/")
	selector := fmt.Sprintf("involvedObject.kind=%s,involvedObject.name=%s,type=%s,reason=%s", about, name, kind, reason)
	mirrortest.Eventually(t, fmt.Sprintf("an Event %s about %s", reason, object), func(ctx context.Context) (err error) {
		messages, err = s.Try.Events(ctx, namespace, selector)
		if err == nil && messages == "" {
			err = errors.New("no such Event")
		}
		return err
	})
	return messages
}

// deniedRules tests rules for a destination that does not admit them: their owners must get an Event.
func deniedRules(t *testing.T, s *testCluster) {
	s.newMirror(t, "closed")
	s.CreateNamespace(t, "outside")
	s.Apply(t, `
apiVersion: configbutler.ai/v1alpha1
kind: WatchRule
metadata: {name: denied, namespace: outside}
spec: {destinationRef: {name: main, namespace: closed}, rules: [{name: config, resources: [configmaps]}]}
---
apiVersion: configbutler.ai/v1alpha1
kind: ClusterWatchRule
metadata: {name: denied}
spec: {destinationRef: {name: main, namespace: closed}, rules: [{name: namespaces, scope: Cluster, resources: [namespaces]}]}
`)
	for namespace, object := range map[string]string{"outside": "WatchRule/denied", "default": "ClusterWatchRule/denied"} {
		if message := s.event(t, namespace, object, "Warning",
			"AccessNotGranted"); !strings.Contains(message, "GitDestination closed/main does not admit") {
			t.Errorf("%s: %s", object, message)
		}
	}
	s.Patch(t, "closed", "gitdestination/main",
		`{"spec": {"accessPolicy": {"allowClusterRules": true, "namespacedRules": {"mode": "AllNamespaces"}}}}`)
	s.event(t, "outside", "WatchRule/denied", "Normal", "Recovered")
	s.event(t, "default", "ClusterWatchRule/denied", "Normal", "Recovered")
	s.Delete(t, "", "clusterwatchrule/denied")
}
