// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notifications

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/test/devcluster"
)

// Values that tests search for.
const (
	deploymentValue = "shop/web:content-of-a-deployment"
	configMapValue  = "content-of-a-configmap"
	secretValue     = "content-of-a-secret"
)

// testContent changes a Deployment, a ConfigMap and a Secret, for sinks with each content.
func (s *testCluster) testContent(t *testing.T) {
	const namespace = "content"
	m := s.NewMirror(t, namespace, "secrets: AsIs", "granularity: PerChange")
	m.Watch(t, "all", "deployments.apps", "configmaps", "secrets")
	apply := func(image, configMap, secret string) {
		t.Helper()
		s.jane.Apply(t, fmt.Sprintf(workload, "web", image, namespace)+
			fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: %s}, data: {level: %s}}\n---\n", namespace, configMap)+
			fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: token, namespace: %s}, stringData: {token: %s}}\n", namespace, secret))
	}
	apply("shop/web:1", "before", "first-value")
	m.Holds(t, "core/v1/secrets/"+namespace+"/token.yaml", "token:")
	m.Settled(t)
	inboxes := map[string]inbox{}
	for _, content := range []string{"Fields", "Diff", "Full"} {
		inboxes[content] = newInbox(t)
		s.sink(t, namespace, strings.ToLower(content), inboxes[content].sink(), prompt, "events: [Change]", "content: "+content)
	}
	apply(deploymentValue, configMapValue, secretValue)
	for content, r := range inboxes {
		hasPath := func(path string) func(*message.Notification) bool {
			return func(n *message.Notification) bool { return len(n.Fields) == 1 && n.Fields[0].Path == path }
		}
		r.gets(t, "Change Deployment web", hasPath("/spec/template/spec/containers[name=main]/image"))
		r.gets(t, "Change ConfigMap settings", hasPath("/data/level"))
		changed := r.gets(t, "Change Secret token")
		if len(changed.ChangedBy) != 1 || changed.ChangedBy[0].Name != s.jane.Name || len(changed.Commits) != 1 {
			t.Errorf("%s: %+v", content, changed)
		}
		body := r.body()
		for value, shown := range map[string]bool{
			deploymentValue: content != "Fields", configMapValue: content == "Full", secretValue: false,
			"Y29udGVudC1vZi1hLXNlY3JldA": false, "first-value": false,
		} {
			if strings.Contains(body, value) != shown {
				t.Errorf("content %s: %q is shown: %t, want %t\n%s", content, value, !shown, shown, body)
			}
		}
	}
	s.logLacks(t, secretValue, "Y29udGVudC1vZi1hLXNlY3JldA", configMapValue, deploymentValue)
}

// logLacks checks that the server has not logged texts.
func (s *testCluster) logLacks(t *testing.T, texts ...string) {
	t.Helper()
	log, err := os.ReadFile(s.Env(devcluster.EnvServerLog))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if strings.Contains(string(log), text) {
			t.Errorf("the server logged %q", text)
		}
	}
}

// testBypass has a user change what Helm manages.
func (s *testCluster) testBypass(t *testing.T) {
	const namespace = "bypassed"
	m := s.NewMirror(t, namespace, "granularity: PerChange")
	m.Watch(t, "all", "configmaps")
	r := newInbox(t)
	s.sink(t, namespace, "chat", r.sink(), prompt, "events: [Bypass]")
	manifest := `
apiVersion: v1
kind: ConfigMap
metadata:
  name: released
  namespace: bypassed
  labels: {app.kubernetes.io/managed-by: Helm}
  annotations: {meta.helm.sh/release-name: shop, meta.helm.sh/release-namespace: bypassed}
data: {level: info}
`
	if _, err := s.jane.Kubectl.Feed(t.Context(), manifest, "create", "--field-manager=helm", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	m.Holds(t, m.ConfigMapPath("released"), "level: info")
	s.jane.Run(t, "patch", "-n", namespace, "configmap/released", "--patch", "data: {level: debug}")
	bypass := r.gets(t, "Bypass ConfigMap released")
	if bypass.Headline != "ConfigMap bypassed/released: Updated by jane, bypassing Helm bypassed/shop" {
		t.Errorf("%+v", bypass)
	}
	s.delivered(t, namespace, "chat", 1)
	r.expect(t, "Bypass ConfigMap released")
}
