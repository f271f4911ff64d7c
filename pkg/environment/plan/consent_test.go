// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

const (
	notShared = "Failed to sync Secret 'database' from production - " +
		"the catalog does not share it: what it last took from its source does not refer to it"
	certified = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  rules: [{host: web.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]
  tls: [{hosts: [web.example.com], secretName: database}]
`
)

// withoutSecret returns the Deployment web without its reference to the Secret.
func withoutSecret(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	return replaced(t, web, `, envFrom: [{secretRef: {name: database}}]`, "")
}

// byConsent has Secrets copied by the consent of the catalog's editor, and changes the Secret.
func (s *fixture) byConsent(t *testing.T) {
	t.Helper()
	s.Action, s.SecretsByConsent = v1alpha1.SyncActionCluster, true
	s.put(replaced(t, database, "aHVudGVyMg==", "aHVudGVyMw=="))
}

// TestRefreshesCopyWhatIsStillShared refreshes a Secret after the catalog has changed. The index of the environment still has the Secret.
func TestRefreshesCopyWhatIsStillShared(t *testing.T) {
	for name, tt := range map[string]struct {
		do     func(*fixture)
		shared bool
	}{
		"referred to":              {func(*fixture) {}, true},
		"of a workload taken away": {func(s *fixture) { s.drop("Deployment", "web") }, false},
		"no longer referred to":    {func(s *fixture) { s.put(withoutSecret(t)) }, false},
		"by an account": {func(s *fixture) {
			s.put(withoutSecret(t))
			s.put(object(t, pulling))
		}, true},
		"by an account of a workload taken away": {func(s *fixture) {
			s.drop("Deployment", "web")
			s.put(replaced(t, pulling, "default", "web"))
		}, false},
		"by an Ingress": {func(s *fixture) {
			s.put(withoutSecret(t))
			s.put(object(t, certified))
		}, true},
		"by an Ingress of a workload taken away": {func(s *fixture) {
			s.drop("Deployment", "web")
			s.put(object(t, certified))
		}, false},
		"only by a patch": {func(s *fixture) {
			s.put(withoutSecret(t))
			s.Environment.Spec.Patches = []v1alpha1.Patch{{
				Target: v1alpha1.PatchTarget{Kind: "Deployment"}, Type: v1alpha1.PatchJSON6902,
				Patch: `[{op: add, path: /spec/template/spec/containers/0/envFrom/-, value: {secretRef: {name: database}}}]`,
			}}
		}, false},
		"by the rights of the requester": {func(s *fixture) {
			s.drop("Deployment", "web")
			s.SecretsByConsent = false
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := shop(t)
			s.byConsent(t)
			tt.do(s)
			before := slices.Clone(s.Index)
			p := s.plan()
			const refreshed = "update Secret database: the environment's workloads need it /data/password /metadata/labels/configbutler.ai~1revision"
			if got := lines(p); slices.Contains(got, refreshed) != tt.shared {
				t.Errorf("steps:\n%s", strings.Join(got, "\n"))
			}
			var fails []string
			for _, failure := range p.Failures() {
				fails = append(fails, failure.Reason+": "+failure.Message)
			}
			if want := v1alpha1.ReasonPermissionLost + ": " + notShared; tt.shared != (len(fails) == 0) || !tt.shared && fails[0] != want {
				t.Errorf("failures: %q", fails)
			}
			at := slices.IndexFunc(before, func(r v1alpha1.EnvironmentDependencyRecord) bool { return r.Source.Name == "database" })
			if was, is := before[at], p.Index[at]; (was.Hash != is.Hash) != tt.shared || is.Missing {
				t.Errorf("record = %+v, was %+v", is, was)
			}
		})
	}
}

// TestSecretsThatAreNotSharedStay refreshes an environment of which the target was deleted: the Secret is made again as it was.
func TestSecretsThatAreNotSharedStay(t *testing.T) {
	s := shop(t)
	s.byConsent(t)
	s.drop("Deployment", "web")
	s.Unshared = plan.Denial{Reason: v1alpha1.ReasonUnreachable, Message: "jane may not"}
	clear(s.target.objects)
	p := s.sync()
	want := "create Secret database: it is not read in the source, and it is made again as it was"
	if got := lines(p); !slices.Contains(got, want) {
		t.Errorf("steps:\n%s", strings.Join(got, "\n"))
	}
	fails := p.Failures()
	if len(fails) != 1 || fails[0].Reason != v1alpha1.ReasonUnreachable || fails[0].Message != notShared+", and jane may not" {
		t.Errorf("failures: %+v", fails)
	}
}

// TestRollbacksKeepCopiesThatAreNotShared has the catalog offer a workload again, which it did not have before.
func TestRollbacksKeepCopiesThatAreNotShared(t *testing.T) {
	s := shop(t)
	s.byConsent(t)
	s.Action, s.Consented = v1alpha1.SyncActionAll, []*unstructured.Unstructured{object(t, report)}
	p := s.sync()
	if got := lines(p); !slices.Contains(got, "leave Secret database: it is not read in the source, and something refers to it") {
		t.Errorf("steps:\n%s", strings.Join(got, "\n"))
	}
	if fails := p.Failures(); len(fails) != 1 || fails[0].Message != notShared {
		t.Errorf("failures: %+v", fails)
	}
	s.Consented = append(s.Consented, object(t, web))
	if p := s.sync(); !slices.ContainsFunc(lines(p), func(line string) bool { return strings.HasPrefix(line, "update Secret database") }) {
		t.Errorf("steps: %q", lines(p))
	}
}

// TestNeedsOfConsent builds the source from Needs alone: the consent depends on accounts that the index does not have.
func TestNeedsOfConsent(t *testing.T) {
	s := shop(t)
	s.byConsent(t)
	s.put(withoutSecret(t))
	s.put(object(t, pulling))
	want, kept := written(s.plan()), s.Source
	s.Source = slices.DeleteFunc(slices.Clone(kept), func(o *unstructured.Unstructured) bool {
		return slices.Contains([]string{"ConfigMap", "Secret", "ServiceAccount"}, o.GetKind())
	})
	for before := -1; before != len(s.Source); {
		before = len(s.Source)
		s.Source = append(s.Source, needed(t, s.Input, kept)...)
	}
	if diff := cmp.Diff(want, written(s.plan())); diff != "" {
		t.Errorf("plan differs from that of the whole source:\n%s", diff)
	}
}
