// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"fmt"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	typed "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// slipstream is the server.
type slipstream struct {
	*mirrortest.AdminCluster
	relay      *relay
	audit      target
	rules      typed.ClusterWatchRuleInterface
	repository string
}

// ownNamespace is the namespace of the server's objects.
const ownNamespace = "mirrors"

func newSlipstream(b *testing.B, s *testCluster) tool {
	b.Helper()
	config, err := s.AuditWebhook().RESTConfig()
	if err != nil {
		b.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		b.Fatal(err)
	}
	s.CreateNamespace(b, ownNamespace)
	own := &slipstream{
		AdminCluster: s.AdminCluster, relay: s.relay, audit: target{client: client, url: config.Host},
		rules: mirrortest.ClientOf(b, s.Admin(), versioned.NewForConfig).ConfigbutlerV1alpha1().ClusterWatchRules(),
	}
	s.relay.forward(own.name(), own.audit)
	return own
}

func (s *slipstream) name() string { return "slipstream" }

func (s *slipstream) launch(b *testing.B) {
	b.Helper()
	if err := s.StartServer(b.Context()); err != nil {
		b.Fatal(err)
	}
	s.relay.forward(s.name(), s.audit)
}

func (s *slipstream) end(b *testing.B) {
	b.Helper()
	s.relay.forget(s.name())
	if err := s.StopServer(b.Context(), syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
}

func (s *slipstream) pid(b *testing.B) string {
	b.Helper()
	return s.Env(devcluster.EnvServerPIDs)
}

func (s *slipstream) path(object *corev1.ConfigMap) string {
	return "core/v1/configmaps/" + object.Namespace + "/" + object.Name + ".yaml"
}

func (s *slipstream) watch(b *testing.B, repository, url string) {
	b.Helper()
	s.repository = repository
	s.Apply(b, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha1
kind: GitRepoConfig
metadata: {namespace: %[1]s, name: %[2]s}
spec: {repoUrl: "%[3]s", allowedBranches: [main], accessPolicy: {allowClusterRules: true}}
---
apiVersion: configbutler.ai/v1alpha1
kind: GitDestination
metadata: {namespace: %[1]s, name: %[2]s}
spec: {repoRef: {name: %[2]s}, branch: main, baseFolder: %[4]s, secrets: Omit, accessPolicy: {allowClusterRules: true}}
---
apiVersion: configbutler.ai/v1alpha1
kind: ClusterWatchRule
metadata: {name: %[2]s}
spec:
  destinationRef: {namespace: %[1]s, name: %[2]s}
  rules:
  - {name: configmaps, resources: [configmaps], scope: Namespaced, namespaceSelector: {matchLabels: {bench: population}}}
`, ownNamespace, repository, url, baseFolder))
}

func (s *slipstream) ready(b *testing.B) {
	b.Helper()
	s.Ready(b, ownNamespace, "gitrepoconfigs.configbutler.ai/"+s.repository, "gitdestinations.configbutler.ai/"+s.repository)
}

func (s *slipstream) unwatch(b *testing.B) {
	b.Helper()
	// The destination is deleted first: without its rule, it would remove its files. Discovery has only the preferred version
	// of a kind, which is that of GitOps Reverser for rules.
	s.Delete(b, ownNamespace, "gitdestinations.configbutler.ai/"+s.repository)
	if err := s.rules.Delete(b.Context(), s.repository, metav1.DeleteOptions{}); err != nil {
		b.Fatal(err)
	}
	s.Delete(b, ownNamespace, "gitrepoconfigs.configbutler.ai/"+s.repository)
}
