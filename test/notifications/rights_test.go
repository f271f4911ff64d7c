// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package notifications

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/notification/message"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
	"github.com/configbutler/slipstream/test/testkit/people"
)

// person returns a new user with roles in a namespace.
func (s *testCluster) person(t *testing.T, name, namespace string, roles ...string) *people.Person {
	t.Helper()
	for _, role := range roles {
		s.Apply(t, people.In(namespace, role, name))
	}
	return people.New(t, s.Cluster, name)
}

// expectForbidden checks that an error says that something is forbidden, and has texts.
func expectForbidden(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Error("the request was accepted")
		return
	}
	for _, text := range append(texts, "forbidden") {
		if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(text)) {
			t.Errorf("error = %v, want %q", err, text)
		}
	}
}

// sinkManagers is a role for sinks and nothing else.
const sinkManagers = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: sink-managers}
rules:
- {apiGroups: [configbutler.ai], resources: [notificationsinks, notificationsinks/test], verbs: ["*"]}
---
`

// testRefused has users create sinks, and test one, without the rights that they require.
func (s *testCluster) testRefused(t *testing.T) {
	s.CreateNamespace(t, "refused")
	r := newInbox(t)
	s.Apply(t, sinkManagers+people.In(devcluster.ServerNamespace, "sink-managers", "mallory"))
	mallory := s.person(t, "mallory", "refused", "sink-managers")
	s.secret(t, "refused", "hook", "secret: "+webhookSecret)
	mirrortest.Eventually(t, "mallory has rights on sinks", canList(mallory, "refused"))
	for name, test := range map[string]struct{ namespace, receiver, lines, permission string }{
		"environments":  {"refused", r.sink(), "events: [Failed]", "list environments.configbutler.ai in the namespace refused"},
		"changes":       {"refused", r.sink(), "events: [Change]", "list changes.configbutler.ai in the namespace refused"},
		"events":        {"refused", "event: {}", "events: [Failed]", "create events in the namespace refused"},
		"secret":        {"refused", r.sink("secretRef: {name: hook}"), "events: [Failed]", "get secrets"},
		"server":        {devcluster.ServerNamespace, r.sink(), "events: [Failed]", "list environments.configbutler.ai in the whole cluster"},
		"server, named": {devcluster.ServerNamespace, r.sink(), "events: [Failed]\n  namespaces: [life]", "list environments.configbutler.ai in the namespace life"},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := fmt.Sprintf(sinkOf, "stolen", test.namespace, test.receiver+"\n  "+test.lines)
			_, err := mallory.Kubectl.Feed(t.Context(), manifest, "create", "-f", "-")
			expectForbidden(t, err, "mallory", test.permission)
		})
	}

	s.sink(t, "refused", "chat", r.sink("secretRef: {name: hook}"), prompt, "events: [Failed]")
	_, err := mallory.Kubectl.Feed(t.Context(), "{}", "create", "--raw", testPath("refused", "chat"), "-f", "-")
	expectForbidden(t, err, "mallory")
	if requests := r.Requests(); len(requests) > 0 {
		t.Errorf("%d messages were sent", len(requests))
	}
	// With the other rights, only that on the Secret is missing.
	s.Apply(t, people.In("refused", "slipstream-view", "mallory"))
	mirrortest.Eventually(t, "mallory may list environments", canList(mallory, "refused", "environments", "syncstatuses"))
	_, err = mallory.Kubectl.Feed(t.Context(), "{}", "create", "--raw", testPath("refused", "chat"), "-f", "-")
	expectForbidden(t, err, "mallory", "get secrets", "hook")
	if requests := r.Requests(); len(requests) > 0 {
		t.Errorf("%d messages were sent", len(requests))
	}
}

// testOnlyReadableTypes has a user who may read Deployments but not Secrets be notified of Changes.
func (s *testCluster) testOnlyReadableTypes(t *testing.T) {
	const namespace = "readable"
	m := s.NewMirror(t, namespace, "secrets: AsIs", "granularity: PerChange")
	m.Watch(t, "all", "deployments.apps", "secrets")
	m.Settled(t)
	r := newInbox(t)
	dora := s.person(t, "dora", namespace, "slipstream-admin", "deployment-readers")
	mirrortest.Eventually(t, "dora has rights", canList(dora, namespace))
	s.sinkBy(t, dora, namespace, "chat", r.sink(), "digestWindow: 1s", "events: [Change]")
	for i := range 3 {
		s.secret(t, namespace, "token", fmt.Sprintf("token: value-%d", i))
		s.jane.Apply(t, fmt.Sprintf(workload, "web", fmt.Sprintf("shop/web:%d", i), namespace))
		image := fmt.Sprintf("%q", fmt.Sprintf("shop/web:%d", i))
		if i > 0 {
			r.gets(t, "Change Deployment web", func(n *message.Notification) bool {
				return len(n.Fields) == 1 && n.Fields[0].After != nil && *n.Fields[0].After == image
			})
		}
	}
	s.delivered(t, namespace, "chat", 3)
	status := s.status(t, namespace, "chat", "is idle", func(status *v1alpha1.NotificationSinkStatus) bool { return status.Pending == 0 })
	total := 0
	for _, letter := range r.letters() {
		total += letter.Count
	}
	if total != 3 || status.Notifications != 3 || strings.Contains(r.body(), "token") {
		t.Errorf("%d notifications, %d in the status: %q\n%s", total, status.Notifications, lines(r.notifications()), r.body())
	}
	r.expect(t, "Change Deployment web", "Change Deployment web", "Change Deployment web")
}

// testOwnNamespace has things happen in two namespaces, with a sink in one, and one in the server's that names the other.
func (s *testCluster) testOwnNamespace(t *testing.T) {
	inboxes := map[string]inbox{}
	for _, namespace := range []string{"own-a", "own-b"} {
		m := s.NewMirror(t, namespace)
		m.Watch(t, "all", "configmaps")
		m.Settled(t)
		inboxes[namespace] = newInbox(t)
		s.sink(t, namespace, "chat", inboxes[namespace].sink(), prompt, "events: [Change]")
	}
	named := newInbox(t)
	s.sink(t, devcluster.ServerNamespace, "named", named.sink(), prompt, "events: [Change]", "namespaces: [own-b]")
	s.ConfigMap(t, "own-a", "first", "a: '1'")
	inboxes["own-a"].gets(t, "Change ConfigMap first")
	s.ConfigMap(t, "own-b", "second", "a: '1'")
	inboxes["own-b"].gets(t, "Change ConfigMap second")
	named.gets(t, "Change ConfigMap second")
	s.ConfigMap(t, "own-a", "third", "a: '1'")
	inboxes["own-a"].gets(t, "Change ConfigMap third")
	inboxes["own-a"].expect(t, "Change ConfigMap first", "Change ConfigMap third")
	inboxes["own-b"].expect(t, "Change ConfigMap second")
	named.expect(t, "Change ConfigMap second")
}

// testPermissionLost revokes what two sinks require.
func (s *testCluster) testPermissionLost(t *testing.T) {
	const namespace = "lost"
	m := s.NewMirror(t, namespace)
	m.Watch(t, "all", "configmaps")
	m.Settled(t)
	s.secret(t, namespace, "hook", "secret: "+webhookSecret)
	signed, plain := inbox{notifytestWebhook(t)}, newInbox(t)
	s.Apply(t, people.In(namespace, "secret-readers", "sam")+people.In(namespace, "editors", "nell"))
	sam := s.person(t, "sam", namespace, "slipstream-admin", "editors")
	nell := s.person(t, "nell", namespace, "slipstream-admin")
	mirrortest.Eventually(t, "the users have rights", canList(sam, namespace))
	mirrortest.Eventually(t, "the users have rights", canList(nell, namespace))
	s.sinkBy(t, sam, namespace, "signed", signed.sink("secretRef: {name: hook}"), prompt, "events: [Change]")
	s.sinkBy(t, nell, namespace, "plain", plain.sink(), prompt, "events: [Change]")
	s.ConfigMap(t, namespace, "first", "a: '1'")
	signed.gets(t, "Change ConfigMap first")
	plain.gets(t, "Change ConfigMap first")
	s.delivered(t, namespace, "signed", 1)
	s.delivered(t, namespace, "plain", 1)

	s.Apply(t, people.In(namespace, "configmap-readers", "sam")+`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: configmap-readers}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get]}
`)
	s.Delete(t, namespace, "rolebinding/sam-editors", "rolebinding/sam-secret-readers", "rolebinding/nell-slipstream-admin")
	s.restart(t, syscall.SIGTERM) // Granted permissions are cached for some minutes; a new process starts without the cache.
	if text := s.condition(t, namespace, "signed", v1alpha1.ConditionReady, v1alpha1.ReasonPermissionLost); !strings.Contains(text,
		`user "sam" may not get secrets`) {
		t.Errorf("message = %q", text)
	}
	if text := s.condition(t, namespace, "plain", v1alpha1.ConditionReady, v1alpha1.ReasonPermissionLost); !strings.Contains(text,
		`user "nell" may not list changes.configbutler.ai in the namespace lost`) {
		t.Errorf("message = %q", text)
	}
	witness := newInbox(t)
	s.sink(t, namespace, "witness", witness.sink(), prompt, "events: [Change]")
	s.ConfigMap(t, namespace, "second", "a: '1'")
	witness.gets(t, "Change ConfigMap second")
	s.delivered(t, namespace, "witness", 1)
	signed.expect(t, "Change ConfigMap first")
	plain.expect(t, "Change ConfigMap first")
}
