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
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/clustertest"
)

// request is one that the audit policy is evaluated for.
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
				t.Errorf("%+v got level %s, want %s", each, got.Level, test.level)
			}
			if got.Level != auditinternal.LevelNone && !got.OmitManagedFields {
				t.Errorf("%+v: got managed fields in the event", each)
			}
		}
	}
	got := evaluator.EvaluatePolicyRule(authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "jane"}, Verb: "post", Path: "/audit"})
	if got.Level != auditinternal.LevelNone {
		t.Errorf("non-resource requests: got level %s, want None", got.Level)
	}
}

// Both signals are configured by the files that users apply.
func TestSignals(t *testing.T) {
	cluster := clustertest.Start(t, devcluster.Options{Server: true, Audit: true, Admission: true})
	s := newSignals(t, cluster)

	t.Run("AuditEvents", func(t *testing.T) { s.checkAuditEvents(t) })
	t.Run("AdmissionReviews", func(t *testing.T) { s.checkReviews(t) })
	t.Run("NoOtherReviews", func(t *testing.T) { s.checkNoReviews(t) })
	t.Run("DirectAdmission", func(t *testing.T) {
		if err := cluster.UseDirectAdmission(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.checkReviews(t)
	})
	t.Run("ServerStopped", func(t *testing.T) { s.checkServerStopped(t) })
	t.Run("ServerRestarted", func(t *testing.T) {
		if err := cluster.StartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.checkReviews(t)
		s.checkAuditEvents(t)
	})
}

// signals checks the signals of a cluster.
type signals struct {
	cluster *devcluster.Cluster
	kubectl devcluster.Kubectl
	objects *devcluster.Objects
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
	objects, err := cluster.Admin().Objects()
	if err != nil {
		t.Fatal(err)
	}
	return &signals{cluster: cluster, kubectl: cluster.Kubectl(cluster.Admin()), objects: objects, client: client}
}

// run runs kubectl.
func (s *signals) run(t *testing.T, arguments ...string) {
	t.Helper()
	if _, err := s.kubectl.Run(t.Context(), arguments...); err != nil {
		t.Fatal(err)
	}
}

// reviews returns kube-apiserver's counts of admission reviews.
func (s *signals) reviews(t *testing.T) string {
	t.Helper()
	metrics, err := s.objects.Read(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	return linesWith(metrics, "apiserver_admission_webhook_request_total{")
}

// recorded returns the server's count of recorded audit events, which the administrator may read.
func (s *signals) recorded(ctx context.Context) (string, error) {
	metrics, err := s.cluster.ReadServer(ctx, "/metrics")
	return linesWith(metrics, `slipstream_audit_events_total{outcome="recorded"}`), err
}

// linesWith returns the lines of a text that begin with a prefix.
func linesWith(text, prefix string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// checkAuditEvents checks that the server records the event of a change.
func (s *signals) checkAuditEvents(t *testing.T) {
	t.Helper()
	before, err := s.recorded(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.run(t, "create", "namespace", fmt.Sprintf("audited-%d", time.Now().UnixNano()))
	testkit.EventuallyWithin(t, deadline, "an audit event", func(ctx context.Context) error {
		now, err := s.recorded(ctx)
		if err == nil && now == before {
			err = errors.New("the server recorded no audit event: " + now)
		}
		return err
	})
}

// checkReviews checks that changes of objects and of their scale are reviewed by the server.
func (s *signals) checkReviews(t *testing.T) {
	t.Helper()
	namespace := fmt.Sprintf("reviewed-%d", time.Now().UnixNano())
	s.run(t, "create", "namespace", namespace)
	s.run(t, "create", "-n", namespace, "deployment", "web", "--image=registry.example.com/web:1")
	for _, arguments := range [][]string{
		{"create", "configmap", "settings"},
		{"label", "configmap/settings", "a=b"},
		{"delete", "configmap/settings"},
		{"scale", "deployment/web", "--replicas=3"},
	} {
		before := s.reviews(t)
		s.run(t, append(arguments, "-n", namespace)...)
		after := s.reviews(t)
		if before == after {
			t.Errorf("no admission review for kubectl %v", arguments)
		}
		if strings.Contains(after, `code="4`) {
			t.Errorf("rejected admission reviews:\n%s", after)
		}
	}
}

// checkNoReviews checks that requests that change nothing mirrored are not reviewed. It retries, since controllers may write
// objects at the same time.
func (s *signals) checkNoReviews(t *testing.T) {
	t.Helper()
	s.run(t, "create", "configmap", "unasked", "-n", "default")
	const lease = "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: unasked, namespace: default}\n"
	for _, manifest := range []string{lease, gitRepoConfig} {
		if _, err := s.kubectl.Feed(t.Context(), manifest, "apply", "-f", "-"); err != nil {
			t.Fatal(err)
		}
	}
	testkit.EventuallyWithin(t, deadline, "requests without reviews", func(context.Context) error {
		before := s.reviews(t)
		now := fmt.Sprintf("now=%d", time.Now().UnixNano())
		s.run(t, "label", "--overwrite", "-n", "default", "lease/unasked", "gitrepoconfig/kept", now)
		s.run(t, "label", "--overwrite", "-n", "default", "configmap/unasked", now, "--dry-run=server")
		s.run(t, "create", "token", "default", "-n", "default")
		s.run(t, "auth", "can-i", "create", "configmaps")
		if after := s.reviews(t); after != before {
			return fmt.Errorf("admission reviews of requests that change nothing mirrored:\n%s\nbefore:\n%s", after, before)
		}
		return nil
	})
}

// checkServerStopped checks that writes succeed while the server is stopped, without waiting for the webhook's timeout. It checks
// the shortest write, since the duration of the others depends on the load of the machine.
func (s *signals) checkServerStopped(t *testing.T) {
	t.Helper()
	if err := s.cluster.StopServer(t.Context(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	const (
		writes         = 20
		webhookTimeout = 2 * time.Second
	)
	var shortest time.Duration
	for i := range writes {
		object, began := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("unharmed-%d", i)}}, time.Now()
		if _, err := s.client.CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		if took := time.Since(began); i == 0 || took < shortest {
			shortest = took
		}
	}
	if shortest >= webhookTimeout {
		t.Errorf("the shortest of %d writes took %s", writes, shortest)
	}
	if err := s.cluster.ControllerManagerHealthy(t.Context()); err != nil {
		t.Error(err)
	}
}
