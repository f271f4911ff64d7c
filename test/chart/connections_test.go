// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Connections that servers make unless somebody says another port.
var (
	dns       = connection{"DNS", corev1.ProtocolUDP, 53}
	longDNS   = connection{"DNS, long answers", corev1.ProtocolTCP, 53}
	apiServer = connection{"kube-apiserver, by its Service", corev1.ProtocolTCP, 443}
	behind    = connection{"kube-apiserver, where the Service leads to", corev1.ProtocolTCP, 6443}
	https     = connection{"Git and receivers by https", corev1.ProtocolTCP, 443}
	ssh       = connection{"Git by ssh", corev1.ProtocolTCP, 22}
	etcdPeer  = connection{"etcd", corev1.ProtocolTCP, 2379}
	gitea     = connection{"Git on a port of its own", corev1.ProtocolTCP, 3000}
	collector = connection{"a collector of traces", corev1.ProtocolTCP, 4317}
)

// connection is one that a Pod makes.
type connection struct {
	name     string
	protocol corev1.Protocol
	port     int32
}

// What the server does by default goes on under a policy that restricts it, and what values name besides. Nothing else does.
func TestConnectionsThatAreMade(t *testing.T) {
	always := []connection{dns, longDNS, apiServer, behind, https, ssh}
	for name, test := range map[string]struct {
		values  string
		allowed []connection
		refused []connection
	}{
		"nothing is restricted": {"{}", append([]connection{etcdPeer, gitea, collector}, always...), nil},
		"restricted":            {"{networkPolicy: {egress: {restrict: true}}}", always, []connection{etcdPeer, gitea, collector}},
		"restricted, on etcd": {
			`{storage: {backend: etcd3, etcd: {servers: ["https://a:2379"]}}, networkPolicy: {egress: {restrict: true}}}`,
			append([]connection{etcdPeer}, always...), []connection{gitea, collector},
		},
		"restricted, with other ports": {
			"{networkPolicy: {egress: {restrict: true, remotes: {ports: [22, 443, 3000]}, rules: [{ports: [{port: 4317}]}]}}}",
			append([]connection{gitea, collector}, always...), []connection{etcdPeer},
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := objects(t, test.values)
			policy, pod := policyOf(t, all)
			for _, each := range test.allowed {
				if !goesOut(policy, pod, each) {
					t.Errorf("%s is refused: %s %d", each.name, each.protocol, each.port)
				}
			}
			for _, each := range test.refused {
				if goesOut(policy, pod, each) {
					t.Errorf("%s is allowed: %s %d", each.name, each.protocol, each.port)
				}
			}
		})
	}
}

// The port on which the server listens is open, whichever it is, and leads to it from the Service and for probes.
func TestConnectionsThatAreTaken(t *testing.T) {
	for values, port := range map[string]int32{"{}": 10250, "{securePort: 8443}": 8443, "{securePort: 8443, hostNetwork: true}": 8443} {
		all := objects(t, values)
		policy, pod := policyOf(t, all)
		if flag := fmt.Sprintf("--secure-port=%d", port); !slices.Contains(pod.Spec.Containers[0].Args, flag) {
			t.Errorf("%s: the server is not started with %s", values, flag)
		}
		for _, other := range []int32{port, 443, 8080} {
			comes := slices.ContainsFunc(policy.Ingress, func(rule networkingv1.NetworkPolicyIngressRule) bool {
				return len(rule.From) == 0 && reaches(rule.Ports, pod, connection{protocol: corev1.ProtocolTCP, port: other})
			})
			if comes != (other == port) {
				t.Errorf("%s: connections to port %d are let in: %v", values, other, comes)
			}
		}
		service := find[*corev1.Service](t, all, "slipstream").Spec.Ports[0]
		if target := numbered(service.TargetPort, pod); target != port {
			t.Errorf("%s: the Service leads to port %d", values, target)
		}
	}
}

// policyOf returns the policy and the Pod of the server, which it is about.
func policyOf(t *testing.T, all []runtime.Object) (networkingv1.NetworkPolicySpec, corev1.PodTemplateSpec) {
	t.Helper()
	policy := find[*networkingv1.NetworkPolicy](t, all, "slipstream").Spec
	pod := find[*appsv1.Deployment](t, all, "slipstream").Spec.Template
	if !selector(t, &policy.PodSelector).Matches(labels.Set(pod.Labels)) {
		t.Fatalf("the policy is not about the server's Pod, which has the labels %v", pod.Labels)
	}
	return policy, pod
}

// goesOut tells whether a policy lets the Pod connect to anybody at all. One that is not about what goes out lets everything out.
func goesOut(policy networkingv1.NetworkPolicySpec, pod corev1.PodTemplateSpec, to connection) bool {
	return !slices.Contains(policy.PolicyTypes, networkingv1.PolicyTypeEgress) ||
		slices.ContainsFunc(policy.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
			return len(rule.To) == 0 && reaches(rule.Ports, pod, to)
		})
}

// reaches tells whether one of the ports of a rule is that of a connection. A rule without ports is about all.
func reaches(ports []networkingv1.NetworkPolicyPort, pod corev1.PodTemplateSpec, to connection) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(port networkingv1.NetworkPolicyPort) bool {
		protocol := corev1.ProtocolTCP
		if port.Protocol != nil {
			protocol = *port.Protocol
		}
		return protocol == to.protocol && (port.Port == nil || numbered(*port.Port, pod) == to.port)
	})
}

// numbered is the number of a port that may be one of the Pod's, by its name.
func numbered(port intstr.IntOrString, pod corev1.PodTemplateSpec) int32 {
	if port.Type == intstr.Int {
		return port.IntVal
	}
	for _, each := range pod.Spec.Containers[0].Ports {
		if each.Name == port.StrVal {
			return each.ContainerPort
		}
	}
	return 0
}
