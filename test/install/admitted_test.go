// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// restrictedNamespace is a namespace with the restricted Pod Security Standard.
const restrictedNamespace = `
apiVersion: v1
kind: Namespace
metadata:
  name: slipstream-system
  labels: {pod-security.kubernetes.io/enforce: restricted, pod-security.kubernetes.io/enforce-version: latest}
`

// accounts are the service accounts of the Pods, which admission requires.
const accounts = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: slipstream, namespace: slipstream-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: slipstream-check, namespace: slipstream-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: slipstream-page, namespace: slipstream-system}
`

// variants are values that change the Pods.
var variants = map[string][]string{
	"defaults":     nil,
	"cert-manager": {`tls={"mode": "cert-manager"}`},
	"secret":       {`tls={"mode": "secret"}`},
	"etcd":         {`replicas=3`, `storage={"backend": "etcd3", "etcd": {"servers": ["https://etcd:2379"], "tlsSecret": "etcd"}}`},
	"everything mounted": {
		`tls={"mode": "secret"}`, `encryption={"configSecret": "key"}`,
		`attribution={"audit": {"clientCASecret": "audit"}, "admission": {"mode": "direct", "create": false, "segmentSecret": "a", ` +
			`"clientCASecret": "b"}}`,
	},
	"page": {`page={"enabled": true, "url": "https://slipstream.example.com", "replicas": 2, "tls": {"mode": "secret"}}`},
	"page behind a front proxy": {`page={"enabled": true, "url": "https://slipstream.example.com", "tls": {"mode": "secret"}, ` +
		`"authentication": "FrontProxy", "frontProxy": {"clientCA": {"secret": "proxy"}, "groups": ["shop-team"]}}`},
	"extra volumes": {
		`extraEnv=[{"name": "HTTPS_PROXY", "value": "http://proxy"}]`,
		`extraVolumes=[{"name": "authorities", "configMap": {"name": "authorities"}}]`,
		`extraVolumeMounts=[{"name": "authorities", "mountPath": "/etc/ssl/certs", "readOnly": true}]`,
	},
}

func testAdmitted(t *testing.T, s *testCluster) {
	defer s.remove(t)
	s.Apply(t, restrictedNamespace+"---"+accounts)
	for name, values := range variants {
		t.Run(name, func(t *testing.T) {
			pods := s.renderedPods(t, values...)
			if len(pods) < 2 {
				t.Fatalf("chart has %d Pods, want those of the server and of helm test", len(pods))
			}
			for _, pod := range pods {
				if err := s.admit(t, pod); err != nil {
					t.Errorf("%s: %v", pod.Name, err)
				}
			}
		})
	}
	t.Run("the example of a proxy", func(t *testing.T) {
		manifest, err := os.ReadFile(filepath.Join(s.root, "artifacts", "examples", "page-proxy.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		pods := podsIn(t, string(manifest))
		if len(pods) != 1 {
			t.Fatalf("the example has %d Pods", len(pods))
		}
		if err := s.admit(t, pods[0]); err != nil {
			t.Error(err)
		}
	})
	t.Run("unrestricted Pods are rejected", func(t *testing.T) {
		host := s.renderedPods(t, `hostNetwork=true`, `securePort=10443`)[0]
		privileged, yes := s.renderedPods(t)[0], true
		privileged.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &yes}
		for field, pod := range map[string]*corev1.Pod{"hostNetwork": host, "privileged": privileged} {
			if err := s.admit(t, pod); err == nil || !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), "PodSecurity") {
				t.Errorf("Pod with %s: %v", field, err)
			}
		}
	})
}

// admit checks whether the API server admits a Pod.
func (s *testCluster) admit(t *testing.T, pod *corev1.Pod) error {
	t.Helper()
	encoded, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Administrator.Feed(t.Context(), string(encoded), "create", "--dry-run=server", "-f", "-")
	return err
}

// renderedPods returns the Pods of the chart: those of Deployments, and those of hooks.
func (s *testCluster) renderedPods(t *testing.T, values ...string) []*corev1.Pod {
	t.Helper()
	return podsIn(t, s.rendered(t, setting(values)...))
}

// podsIn returns the Pods of a manifest.
func podsIn(t *testing.T, manifest string) []*corev1.Pod {
	t.Helper()
	var pods []*corev1.Pod
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096)
	for {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return pods
		}
		if pod := podOf(t, raw); pod != nil {
			pods = append(pods, pod)
		}
	}
}

// podOf returns the Pod of an object or nil.
func podOf(t *testing.T, raw []byte) *corev1.Pod {
	t.Helper()
	var kind metav1.TypeMeta
	var pod corev1.Pod
	var deployment appsv1.Deployment
	err := json.Unmarshal(raw, &kind)
	switch kind.Kind {
	case "Pod":
		err = errors.Join(err, json.Unmarshal(raw, &pod))
	case "Deployment":
		err = errors.Join(err, json.Unmarshal(raw, &deployment))
		pod = corev1.Pod{ObjectMeta: deployment.Spec.Template.ObjectMeta, Spec: deployment.Spec.Template.Spec}
		pod.APIVersion, pod.Kind, pod.Name, pod.Namespace = "v1", "Pod", fmt.Sprintf("%s-0", deployment.Name), deployment.Namespace
	default:
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return &pod
}

// rendered returns the rendered chart.
func (s *testCluster) rendered(t *testing.T, flags ...string) string {
	t.Helper()
	return s.do(t, "", s.helm, append([]string{"template", "slipstream", chart, "--namespace", namespace}, flags...)...)
}
