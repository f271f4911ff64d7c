// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/test/mirrortest"
)

// event waits for an Event about an object (GitDestination/main) with a type and reason, and returns what such Events say.
func (s *stage) event(t *testing.T, namespace, object, kind, reason string) (messages string) {
	t.Helper()
	about, name, _ := strings.Cut(object, "/")
	selector := fmt.Sprintf("involvedObject.kind=%s,involvedObject.name=%s,type=%s,reason=%s", about, name, kind, reason)
	mirrortest.Eventually(t, fmt.Sprintf("an Event %s about %s", reason, object), func(ctx context.Context) (err error) {
		messages, err = s.Administrator.Run(ctx, "get", "events", "-n", namespace, "--field-selector="+selector, "-o", "jsonpath={.items[*].message}")
		if err == nil && messages == "" {
			err = errors.New("there is none")
		}
		return err
	})
	return messages
}

// deniedRules refer to a destination that does not admit them: the makers of the rules are told where they look.
func deniedRules(t *testing.T, s *stage) {
	s.newMirror(t, "closed")
	s.Run(t, "create", "namespace", "outside")
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
		if message := s.event(t, namespace, object, "Warning", "AccessNotGranted"); !strings.Contains(message, "GitDestination closed/main does not admit") {
			t.Errorf("%s: %s", object, message)
		}
	}
	s.Run(t, "patch", "gitdestination", "main", "-n", "closed", "--type=merge",
		"-p", `{"spec": {"accessPolicy": {"allowClusterRules": true, "namespacedRules": {"mode": "AllNamespaces"}}}}`)
	s.event(t, "outside", "WatchRule/denied", "Normal", "Recovered")
	s.event(t, "default", "ClusterWatchRule/denied", "Normal", "Recovered")
	s.Run(t, "delete", "clusterwatchrule", "denied")
}
