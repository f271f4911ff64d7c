// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/configbutler/slipstream/test/devcluster/programs"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/controllertest"
	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// reverser is GitOps Reverser, with its Redis.
type reverser struct {
	*mirrortest.AdminCluster
	relay             *relay
	audit             target
	controller, redis *controllertest.Controller
	// namespace is that of its objects. It is also that of its clones in /tmp, so it is unique.
	namespace  string
	repository string
}

const (
	// reverserNamespace is the namespace of its program.
	reverserNamespace = "gitops-reverser"
	// reverserClones is the folder of its clones, which cannot be configured.
	reverserClones = "/tmp/gitops-reverser-workers"
	// defaultWindow is its default window of silence before a commit, and smallestWindow the smallest.
	defaultWindow, smallestWindow = "5s", "0s"
)

func newReverser(b *testing.B, s *testCluster) *reverser {
	b.Helper()
	health, audit, metrics, redis := testkit.FreeAddress(b), testkit.FreeAddress(b), testkit.FreeAddress(b), newRedis(b)
	r := &reverser{
		AdminCluster: s.AdminCluster, relay: s.relay, redis: redis, namespace: "reverser-" + strings.ToLower(rand.Text()[:8]),
		audit: target{client: http.DefaultClient, url: "http://" + audit + "/audit-webhook/default"},
		controller: &controllertest.Controller{
			Name: "gitops-reverser", Namespace: reverserNamespace, Env: []string{"POD_NAMESPACE=" + reverserNamespace},
			Flags: []string{
				"--health-probe-bind-address=" + health, "--metrics-bind-address=" + metrics, "--metrics-insecure",
				"--audit-insecure", "--audit-bind-address=" + audit, "--author-attribution=true", "--author-attribution-ttl=10m",
				"--author-attribution-grace=3s", "--redis-addr=" + redis.Name, "--redis-insecure",
				"--zap-log-level=info", "--zap-encoder=json", "--zap-stacktrace-level=error",
			},
			Ready: controllertest.Healthy("http://" + health + "/readyz"),
		},
	}
	s.CreateNamespace(b, reverserNamespace)
	s.CreateNamespace(b, r.namespace)
	r.controller.Install(b, s.Cluster, programs.GitOpsReverser)
	b.Cleanup(func() {
		if err := os.RemoveAll(filepath.Join(reverserClones, r.namespace)); err != nil {
			b.Error(err)
		}
	})
	s.Apply(b, `
apiVersion: configbutler.ai/v1alpha3
kind: ClusterProvider
metadata: {name: default}
spec: {allowedNamespaces: {selector: {}}, allowSourceNamespaceOverride: true}
`)
	return r
}

// newRedis runs a Redis without a file. Its name is its address.
func newRedis(b *testing.B) *controllertest.Controller {
	b.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		b.Fatalf("GitOps Reverser needs Redis, which Debian has in the package redis-server: %v", err)
	}
	address := testkit.FreeAddress(b)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		b.Fatal(err)
	}
	redis := &controllertest.Controller{
		Name: address, Program: program, Flags: []string{"--bind", host, "--port", port, "--save", "", "--appendonly", "no"},
		Ready: func(ctx context.Context) error {
			connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			if err != nil {
				return err
			}
			return connection.Close()
		},
	}
	redis.Prepare(b)
	redis.Start(b)
	return redis
}

func (r *reverser) name() string { return "reverser" }

func (r *reverser) launch(b *testing.B) {
	b.Helper()
	r.controller.Start(b)
	r.relay.forward(r.name(), r.audit)
}

func (r *reverser) end(b *testing.B) {
	b.Helper()
	r.relay.forget(r.name())
	r.controller.Stop()
}

func (r *reverser) pid(b *testing.B) string {
	b.Helper()
	return r.controller.PID(b)
}

func (r *reverser) path(object *corev1.ConfigMap) string {
	return object.Namespace + "/configmaps/" + object.Name + ".yaml"
}

func (r *reverser) watch(b *testing.B, repository, url string) {
	b.Helper()
	r.repository = repository
	r.Apply(b, fmt.Sprintf(`
apiVersion: configbutler.ai/v1alpha3
kind: GitProvider
metadata: {namespace: %[1]s, name: %[2]s}
spec: {url: "%[3]s", allowedBranches: [main], push: {commitWindow: %[5]s}}
---
apiVersion: configbutler.ai/v1alpha3
kind: GitTarget
metadata: {namespace: %[1]s, name: %[2]s}
spec:
  providerRef: {name: %[2]s}
  branch: main
  path: %[4]s
  allowedSourceNamespaces: {selector: {matchLabels: {bench: population}}}
---
apiVersion: configbutler.ai/v1alpha3
kind: WatchRule
metadata: {namespace: %[1]s, name: %[2]s}
spec:
  targetRef: {name: %[2]s}
  rules:
  - {operations: [CREATE, UPDATE, DELETE], apiGroups: [""], apiVersions: [v1], resources: [configmaps], sourceNamespace: "*"}
`, r.namespace, repository, url, baseFolder, defaultWindow))
}

func (r *reverser) ready(b *testing.B) {
	b.Helper()
	r.Ready(b, r.namespace, "gitproviders.configbutler.ai/"+r.repository, "gittargets.configbutler.ai/"+r.repository, "watchrules.configbutler.ai/"+r.repository)
}

func (r *reverser) unwatch(b *testing.B) {
	b.Helper()
	r.Delete(b, r.namespace, "watchrules.configbutler.ai/"+r.repository)
	r.Delete(b, r.namespace, "gittargets.configbutler.ai/"+r.repository)
	r.Delete(b, r.namespace, "gitproviders.configbutler.ai/"+r.repository)
}

// window sets the window of silence, which it reads when it is launched.
func (r *reverser) window(b *testing.B, length string) {
	b.Helper()
	r.Patch(b, r.namespace, "gitproviders.configbutler.ai/"+r.repository, fmt.Sprintf(`{"spec":{"push":{"commitWindow":%q}}}`, length))
}
