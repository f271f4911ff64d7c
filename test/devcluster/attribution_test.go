// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/artifacts/attribution"
	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/devcluster/clustertest"
)

// request is one that the audit policy is asked about.
type request struct{ verb, group, resource, subresource string }

func TestAuditPolicy(t *testing.T) {
	content, err := fs.ReadFile(attribution.Files, "audit-policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := policy.LoadPolicyFromBytes(content)
	if err != nil {
		t.Fatal(err)
	}
	evaluator := policy.NewPolicyRuleEvaluator(loaded)
	for _, test := range []struct {
		level    auditinternal.Level
		requests []request
	}{
		{auditinternal.LevelRequestResponse, []request{
			{"create", "", "configmaps", ""}, {"update", "", "configmaps", ""}, {"patch", "", "namespaces", ""},
			{"delete", "", "serviceaccounts", ""}, {"patch", "", "nodes", ""}, {"update", "", "namespaces", "finalize"},
			{"deletecollection", "apps", "deployments", ""}, {"update", "apps", "deployments", "scale"},
			{"patch", "apps", "statefulsets", "scale"}, {"create", "batch", "cronjobs", ""},
			{"create", "apiextensions.k8s.io", "customresourcedefinitions", ""}, {"patch", "shop.example.com", "coupons", ""},
			{"update", "shop.example.com", "coupons", "scale"}, {"update", "rbac.authorization.k8s.io", "clusterroles", ""},
		}},
		{auditinternal.LevelMetadata, []request{
			{"create", "", "secrets", ""}, {"update", "", "secrets", ""}, {"patch", "", "secrets", ""},
			{"delete", "", "secrets", ""}, {"deletecollection", "", "secrets", ""},
			{"create", "admissionregistration.k8s.io", "validatingwebhookconfigurations", ""},
		}},
		{auditinternal.LevelNone, []request{
			{"get", "", "secrets", ""}, {"list", "", "configmaps", ""}, {"watch", "apps", "deployments", ""},
			{"create", "authentication.k8s.io", "tokenreviews", ""}, {"create", "authorization.k8s.io", "subjectaccessreviews", ""},
			{"create", "", "serviceaccounts", "token"}, {"create", "", "pods", "exec"}, {"create", "", "pods", ""},
			{"patch", "", "nodes", "status"}, {"patch", "apps", "deployments", "status"}, {"update", "", "namespaces", "status"},
			{"update", "coordination.k8s.io", "leases", ""}, {"create", "", "events", ""}, {"patch", "events.k8s.io", "events", ""},
			{"update", "", "endpoints", ""}, {"update", "discovery.k8s.io", "endpointslices", ""},
			{"create", "configbutler.ai", "watchrules", ""},
		}},
	} {
		for _, each := range test.requests {
			got := evaluator.EvaluatePolicyRule(authorizer.AttributesRecord{
				User: &user.DefaultInfo{Name: "jane"}, ResourceRequest: true,
				Verb: each.verb, APIGroup: each.group, Resource: each.resource, Subresource: each.subresource,
			})
			if got.Level != test.level {
				t.Errorf("%+v is recorded at level %s, want %s", each, got.Level, test.level)
			}
			if got.Level != auditinternal.LevelNone && !got.OmitManagedFields {
				t.Errorf("%+v is recorded with its managed fields", each)
			}
		}
	}
	got := evaluator.EvaluatePolicyRule(authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "jane"}, Verb: "post", Path: "/audit"})
	if got.Level != auditinternal.LevelNone {
		t.Errorf("requests for no object are recorded at level %s", got.Level)
	}
}

// Both signals come from the files that people apply.
func TestSignals(t *testing.T) {
	cluster := clustertest.Start(t, devcluster.Options{Server: true, Audit: true, Admission: true})
	s := newSignals(t, cluster)

	t.Run("audit events are taken", func(t *testing.T) { s.wantAudited(t) })
	t.Run("kube-apiserver asks about changes of what is mirrored", func(t *testing.T) { s.wantAsked(t) })
	t.Run("and about nothing else", func(t *testing.T) { s.wantUnasked(t) })
	t.Run("it asks without the aggregator, too", func(t *testing.T) {
		if err := cluster.UseDirectAdmission(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.wantAsked(t)
	})
	t.Run("the cluster goes on without the server", func(t *testing.T) { s.wantUnharmed(t) })
	t.Run("the server is asked again when it is back", func(t *testing.T) {
		if err := cluster.StartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.wantAsked(t)
		s.wantAudited(t)
	})
}

// signals looks at the signals of a cluster.
type signals struct {
	cluster *devcluster.Cluster
	kubectl devcluster.Kubectl
	client  kubernetes.Interface
}

func newSignals(t *testing.T, cluster *devcluster.Cluster) *signals {
	t.Helper()
	config, err := cluster.Admin().RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &signals{cluster: cluster, kubectl: cluster.Kubectl(cluster.Admin()), client: client}
}

// run runs kubectl.
func (s *signals) run(t *testing.T, arguments ...string) {
	t.Helper()
	if _, err := s.kubectl.Run(t.Context(), arguments...); err != nil {
		t.Fatal(err)
	}
}

// asked are kube-apiserver's counts of the questions that it has asked about changes.
func (s *signals) asked(t *testing.T) string {
	t.Helper()
	metrics, err := s.kubectl.Run(t.Context(), "get", "--raw", "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	return linesWith(metrics, "apiserver_admission_webhook_request_total{")
}

// recorded is the server's count of the audit events that it has taken. The administrator is one to it, too.
func (s *signals) recorded(ctx context.Context) (string, error) {
	metrics, err := s.kubectl.Run(ctx, "get", "--raw", "/metrics",
		"--server="+s.cluster.Env(devcluster.EnvServerURL), "--insecure-skip-tls-verify")
	return linesWith(metrics, `slipstream_audit_events_total{outcome="recorded"}`), err
}

// linesWith are the lines of a text that begin with a prefix.
func linesWith(text, prefix string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// wantAudited checks that the server takes the event of a change.
func (s *signals) wantAudited(t *testing.T) {
	t.Helper()
	before, err := s.recorded(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.run(t, "create", "namespace", fmt.Sprintf("audited-%d", time.Now().UnixNano()))
	eventually(t, "an audit event", func(ctx context.Context) error {
		now, err := s.recorded(ctx)
		if err == nil && now == before {
			err = errors.New("the server has taken no audit event: " + now)
		}
		return err
	})
}

// wantAsked checks that changes of objects and of their scale are asked about, and answered.
func (s *signals) wantAsked(t *testing.T) {
	t.Helper()
	namespace := fmt.Sprintf("asked-%d", time.Now().UnixNano())
	s.run(t, "create", "namespace", namespace)
	s.run(t, "create", "-n", namespace, "deployment", "web", "--image=registry.example.com/web:1")
	for _, arguments := range [][]string{
		{"create", "configmap", "settings"},
		{"label", "configmap/settings", "a=b"},
		{"delete", "configmap/settings"},
		{"scale", "deployment/web", "--replicas=3"},
	} {
		before := s.asked(t)
		s.run(t, append(arguments, "-n", namespace)...)
		after := s.asked(t)
		if before == after {
			t.Errorf("kube-apiserver does not ask about kubectl %v", arguments)
		}
		if strings.Contains(after, `code="4`) {
			t.Errorf("kube-apiserver is not answered:\n%s", after)
		}
	}
}

// wantUnasked checks that there is no question about what changes nothing that is mirrored. Controllers may write something
// else meanwhile, so it is tried again.
func (s *signals) wantUnasked(t *testing.T) {
	t.Helper()
	s.run(t, "create", "configmap", "unasked", "-n", "default")
	const lease = "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: unasked, namespace: default}\n"
	for _, manifest := range []string{lease, gitRepoConfig} {
		if _, err := s.kubectl.Feed(t.Context(), manifest, "apply", "-f", "-"); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "changes without a question", func(context.Context) error {
		before := s.asked(t)
		now := fmt.Sprintf("now=%d", time.Now().UnixNano())
		s.run(t, "label", "--overwrite", "-n", "default", "lease/unasked", "gitrepoconfig/kept", now)
		s.run(t, "label", "--overwrite", "-n", "default", "configmap/unasked", now, "--dry-run=server")
		s.run(t, "create", "token", "default", "-n", "default")
		s.run(t, "auth", "can-i", "create", "configmaps")
		if after := s.asked(t); after != before {
			return fmt.Errorf("kube-apiserver asks about what is not mirrored:\n%s\nafter\n%s", after, before)
		}
		return nil
	})
}

// wantUnharmed checks that writes succeed while the server is stopped, and do not wait for the webhook's timeout: the quickest
// one would, too. How long the others take depends on how busy the machine is.
func (s *signals) wantUnharmed(t *testing.T) {
	t.Helper()
	if err := s.cluster.StopServer(t.Context(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	const (
		writes         = 20
		webhookTimeout = 2 * time.Second
	)
	var quickest time.Duration
	for i := range writes {
		object, began := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("unharmed-%d", i)}}, time.Now()
		if _, err := s.client.CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		if took := time.Since(began); i == 0 || took < quickest {
			quickest = took
		}
	}
	if quickest >= webhookTimeout {
		t.Errorf("each of %d writes took %s or more", writes, quickest)
	}
	if err := s.cluster.ControllerManagerHealthy(t.Context()); err != nil {
		t.Error(err)
	}
}
