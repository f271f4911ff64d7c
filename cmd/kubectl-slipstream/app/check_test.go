// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	ofGroup     = "/apis/configbutler.ai/v1alpha1"
	webhookPath = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/slipstream-attribution"
	reviewPath  = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	openAPIPath = "/openapi/v3/apis/configbutler.ai/v1alpha1"
)

func noAccess() metav1.Status {
	return apierrors.NewForbidden(schema.GroupResource{}, "", io.EOF).Status()
}

// healthy is a cluster with an installation, a webhook and no objects, of which more replaces parts.
func healthy(more map[string]any) map[string]any {
	objects := map[string]any{
		"/version":     map[string]any{"gitVersion": "v1.37.1"},
		apiServicePath: apiService(registered(), "True"),
		openAPIPath:    map[string]any{"openapi": "3.0.0", "info": map[string]any{"title": "slipstream", "version": "v0.1.0"}},
		ofGroup:        metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: "configbutler.ai/v1alpha1"},
		webhookPath:    map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"},
		reviewPath: map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "status": map[string]any{"allowed": true},
		},
	}
	for resource, kind := range map[string]string{
		"gitrepoconfigs": "GitRepoConfig", "gitdestinations": "GitDestination", "watchrules": "WatchRule", "clusterwatchrules": "ClusterWatchRule",
		"appcatalogs": "AppCatalog", "environments": "Environment", "syncpipelines": "SyncPipeline", "notificationsinks": "NotificationSink",
	} {
		objects[ofGroup+"/"+resource] = listOf(kind)
	}
	maps.Copy(objects, more)
	return objects
}

// listOf returns a list of objects of a kind, which are named a, b and so on, with their conditions.
func listOf(kind string, conditions ...[]metav1.Condition) map[string]any {
	items := []any{}
	for i, each := range conditions {
		items = append(items, map[string]any{
			"apiVersion": "configbutler.ai/v1alpha1", "kind": kind,
			"metadata": map[string]any{"name": string(rune('a' + i)), "namespace": "shop"}, "status": map[string]any{"conditions": each},
		})
	}
	return map[string]any{"apiVersion": "configbutler.ai/v1alpha1", "kind": kind + "List", "items": items}
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

func TestCheck(t *testing.T) {
	ready := condition(v1alpha1.ConditionReady, metav1.ConditionTrue, "Succeeded", "")
	allOf := []metav1.Condition{ready}
	const lines = "ok    cluster: kube-apiserver v1.37.1 answers\n" +
		"ok    API: v1alpha1.configbutler.ai is available, served by the Service mirrors/slip\n"
	const rights = "ok    rights: in namespace shop you may read the history, read earlier states, mirror, create catalogs, create environments, " +
		"sync environments, create pipelines\n"
	const doesNotAnswer = "fail  API: Slipstream's API is registered, and its server does not answer now, so nothing more is checked: " +
		"the server is currently unable to handle the request\n      next: kubectl get apiservice v1alpha1.configbutler.ai; " +
		"kubectl get pods -A -l app.kubernetes.io/name=slipstream\n"
	stopped := apierrors.NewServiceUnavailable("the server is currently unable to handle the request").Status()
	for name, test := range map[string]struct {
		more map[string]any
		want string
		code int
	}{
		"empty": {want: lines + "VERSION" + "ok    authors: the admission webhook slipstream-attribution reports them\n" + rights},
		"all ready": {
			more: map[string]any{
				ofGroup + "/gitdestinations": listOf("GitDestination", allOf, []metav1.Condition{ready, condition("AuthorsReported", "True", "Reported", "")}),
				ofGroup + "/syncpipelines":   listOf("SyncPipeline", allOf),
			},
			want: lines + "VERSION" + "ok    authors: API servers report them\nok    GitDestinations: 2 ready in all namespaces\n" +
				"ok    SyncPipelines: 1 ready in the cluster\n" + rights,
		},
		"objects that are not ready": {
			more: map[string]any{
				ofGroup + "/gitrepoconfigs": listOf("GitRepoConfig",
					[]metav1.Condition{condition("Ready", "False", "AuthenticationFailed", "the remote\nrefuses"), condition("Stalled", "True", "", "")}),
				ofGroup + "/gitdestinations": listOf("GitDestination",
					[]metav1.Condition{condition("Ready", "False", "Suspended", "suspended"), condition("AuthorsReported", "False", "AuditSilent", "no event")}, nil),
				ofGroup + "/environments": listOf("Environment", []metav1.Condition{condition("Ready", "False", "NeverSynced", "request a sync")}),
			},
			want: lines + "VERSION" +
				"fail  GitRepoConfig shop/a: AuthenticationFailed: the remote\\u000arefuses\n      next: kubectl describe gitrepoconfig a -n shop\n" +
				"warn  authors: GitDestination shop/a: AuditSilent: no event\n      next: https://github.com/configbutler/slipstream/blob/main/docs/attribution.md has what to look at\n" +
				"warn  GitDestination shop/a: Suspended: suspended\n      next: kubectl describe gitdestination a -n shop\n" +
				"warn  GitDestination shop/b: the server has not looked at it yet\n      next: if this stays so, the server does not work: its log has the reason\n" +
				"warn  Environment shop/a: NeverSynced: request a sync\n      next: kubectl describe environment a -n shop\n" + rights,
			code: 2,
		},
		"an ordinary user": {
			more: map[string]any{
				apiServicePath: noAccess(), webhookPath: noAccess(),
				ofGroup + "/gitrepoconfigs": noAccess(), ofGroup + "/gitdestinations": noAccess(), ofGroup + "/clusterwatchrules": noAccess(),
				ofGroup + "/namespaces/shop/gitdestinations": listOf("GitDestination", allOf),
				ofGroup + "/namespaces/shop/gitrepoconfigs":  noAccess(),
				reviewPath: map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"},
			},
			want: "ok    cluster: kube-apiserver v1.37.1 answers\nok    API: configbutler.ai/v1alpha1 is served\nVERSION" +
				"warn  GitRepoConfigs: you may not list them in namespace shop\n" +
				"      next: ask for the role slipstream-view in the namespace, or choose another with -n\n" +
				"ok    GitDestinations: 1 ready in namespace shop\n" +
				"warn  authors: no destination says whether the cluster reports them, and you may not read the webhook slipstream-attribution\n" +
				"      next: ask an administrator of the cluster to run this check\n" +
				"warn  rights: in namespace shop you may do nothing with these kinds\n" +
				"      next: ask for the role slipstream-view or slipstream-edit there: https://github.com/configbutler/slipstream/blob/main/docs/permissions.md\n",
		},
		"no webhook, no version": {
			more: map[string]any{
				webhookPath: apierrors.NewNotFound(schema.GroupResource{}, "").Status(), openAPIPath: map[string]any{},
			},
			want: lines + "warn  version: the version of the server is not known: /openapi/v3/apis/configbutler.ai/v1alpha1 has no version\n" +
				"warn  authors: the cluster does not report who makes changes, so commits name no users\n" +
				"      next: configure a webhook: https://github.com/configbutler/slipstream/blob/main/docs/attribution.md\n" + rights,
		},
		"not available": {
			more: map[string]any{apiServicePath: apiService(registered(), "False")},
			want: "ok    cluster: kube-apiserver v1.37.1 answers\n" +
				"fail  API: v1alpha1.configbutler.ai is not available: MissingEndpoints: no endpoints\n" +
				"      next: kubectl get pods -n mirrors; kubectl logs -n mirrors deploy/slipstream; https://github.com/configbutler/slipstream/blob/main/docs/install.md explains the reason\n",
			code: 2,
		},
		"killed just now": {
			more: map[string]any{ofGroup: stopped},
			want: "ok    cluster: kube-apiserver v1.37.1 answers\n" + doesNotAnswer, code: 2,
		},
		"killed just now, for an ordinary user": {
			more: map[string]any{apiServicePath: noAccess(), ofGroup: stopped},
			want: "ok    cluster: kube-apiserver v1.37.1 answers\n" + doesNotAnswer, code: 2,
		},
		"killed during the check": {
			more: map[string]any{ofGroup + "/gitdestinations": stopped},
			want: lines + "VERSION" + strings.Replace(doesNotAnswer, "API:", "GitDestinations:", 1), code: 2,
		},
		"not installed": {
			more: map[string]any{apiServicePath: apierrors.NewNotFound(schema.GroupResource{}, "").Status()},
			want: "ok    cluster: kube-apiserver v1.37.1 answers\nfail  API: v1alpha1.configbutler.ai is not registered\n" +
				"      next: install the server: https://github.com/configbutler/slipstream/blob/main/docs/install.md\n",
			code: 2,
		},
		"no cluster": {
			more: map[string]any{"/version": apierrors.NewUnauthorized("who are you").Status()},
			want: "fail  cluster: the server has asked for the client to provide credentials\n      next: check the kubeconfig, its context and your login: kubectl version\n",
			code: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, notes, code, err := fixed(t, healthy(test.more)).call(t.Context(), "check", "-n", "shop")
			want := strings.Replace(test.want, "VERSION", "ok    version: server v0.1.0, plugin (devel): not compared, since one of them is no release\n", 1)
			if diff := cmp.Diff(want, out); code != test.code || diff != "" || notes != "" {
				t.Errorf("exit code %d, %v, notes %q (-want +got):\n%s", code, err, notes, diff)
			}
		})
	}
}

// TestCheckOfMany lists only some of the objects that are not ready.
func TestCheckOfMany(t *testing.T) {
	many := make([][]metav1.Condition, 13)
	out, _, code, err := fixed(t, healthy(map[string]any{ofGroup + "/appcatalogs": listOf("AppCatalog", many...)})).call(t.Context(), "check")
	if code != 0 || strings.Count(out, "warn  AppCatalog shop/") != 10 ||
		!strings.Contains(out, "warn  AppCatalogs: 3 more are not ready\n      next: kubectl get appcatalogs -A\n") {
		t.Errorf("exit code %d, %v:\n%s", code, err, out)
	}
}

func TestCheckAsJSON(t *testing.T) {
	s := fixed(t, healthy(map[string]any{apiServicePath: apiService(registered(), "False")}))
	out, _, code, err := s.call(t.Context(), "check", "-o", "json")
	var got struct {
		Results []struct{ Level, Check, Message, Next string }
	}
	if problem := json.Unmarshal([]byte(out), &got); problem != nil || code != 2 || err.Error() != "1 of 2 checks failed" || len(got.Results) != 2 ||
		got.Results[1].Level != "fail" || got.Results[1].Check != "API" || got.Results[1].Next == "" {
		t.Errorf("exit code %d, %v, %v: %s", code, err, problem, out)
	}
	if _, _, code, err := s.call(t.Context(), "check", "-o", "yaml"); code != 2 || !strings.Contains(err.Error(), "json or empty") {
		t.Errorf("another format: exit code %d, %v", code, err)
	}
}

func TestVersion(t *testing.T) {
	s := fixed(t, healthy(nil))
	if out, _, code, err := s.call(t.Context(), "version"); code != 0 || !strings.HasPrefix(out, "Plugin: ") || !strings.HasSuffix(out, "\nServer: v0.1.0\n") {
		t.Errorf("exit code %d, %v: %s", code, err, out)
	}
	s.Close()
	if out, _, code, err := s.call(t.Context(), "version", "--client"); code != 0 || strings.Count(out, "\n") != 1 {
		t.Errorf("--client: exit code %d, %v: %s", code, err, out)
	}
	if _, _, code, err := s.call(t.Context(), "version"); code != 2 || !strings.Contains(err.Error(), "read the version of the server") {
		t.Errorf("without a cluster: exit code %d, %v", code, err)
	}
}
