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

// Connections that servers make by default, and others.
var (
	dns       = connection{"DNS", corev1.ProtocolUDP, 53}
	longDNS   = connection{"DNS, long responses", corev1.ProtocolTCP, 53}
	apiServer = connection{"kube-apiserver, port of its Service", corev1.ProtocolTCP, 443}
	behind    = connection{"kube-apiserver, target port of its Service", corev1.ProtocolTCP, 6443}
	https     = connection{"Git and receivers by https", corev1.ProtocolTCP, 443}
	ssh       = connection{"Git by ssh", corev1.ProtocolTCP, 22}
	etcdPeer  = connection{"etcd", corev1.ProtocolTCP, 2379}
	gitea     = connection{"Git on another port", corev1.ProtocolTCP, 3000}
	collector = connection{"collector of traces", corev1.ProtocolTCP, 4317}
)

// connection is a connection of a Pod.
type connection struct {
	name     string
	protocol corev1.Protocol
	port     int32
}

// A restricted policy allows only the server's default connections and those that values add.
func TestOutgoingConnections(t *testing.T) {
	always := []connection{dns, longDNS, apiServer, behind, https, ssh}
	for name, test := range map[string]struct {
		values  string
		allowed []connection
		denied  []connection
	}{
		"not restricted": {"{}", append([]connection{etcdPeer, gitea, collector}, always...), nil},
		"restricted":     {"{networkPolicy: {egress: {restrict: true}}}", always, []connection{etcdPeer, gitea, collector}},
		"restricted, on etcd": {
			`{storage: {backend: etcd3, etcd: {servers: ["https://a:2379"]}}, networkPolicy: {egress: {restrict: true}}}`,
			append([]connection{etcdPeer}, always...), []connection{gitea, collector},
		},
		"restricted, with traces": {
			`{tracing: {endpoint: "collector.observability.svc:4317"}, networkPolicy: {egress: {restrict: true}}}`,
			append([]connection{collector}, always...), []connection{etcdPeer, gitea},
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
				if !allows(policy, pod, each) {
					t.Errorf("%s is denied: %s %d", each.name, each.protocol, each.port)
				}
			}
			for _, each := range test.denied {
				if allows(policy, pod, each) {
					t.Errorf("%s is allowed: %s %d", each.name, each.protocol, each.port)
				}
			}
		})
	}
}

// The server's port is open, and is the target of the Service.
func TestIncomingConnections(t *testing.T) {
	for values, port := range map[string]int32{"{}": 10250, "{securePort: 8443}": 8443, "{securePort: 8443, hostNetwork: true}": 8443} {
		all := objects(t, values)
		policy, pod := policyOf(t, all)
		if flag := fmt.Sprintf("--secure-port=%d", port); !slices.Contains(pod.Spec.Containers[0].Args, flag) {
			t.Errorf("%s: server lacks the argument %s", values, flag)
		}
		for _, other := range []int32{port, 443, 8080} {
			allowed := slices.ContainsFunc(policy.Ingress, func(rule networkingv1.NetworkPolicyIngressRule) bool {
				return len(rule.From) == 0 && includes(rule.Ports, pod, connection{protocol: corev1.ProtocolTCP, port: other})
			})
			if allowed != (other == port) {
				t.Errorf("%s: connections to port %d are allowed: %v", values, other, allowed)
			}
		}
		service := find[*corev1.Service](t, all, "slipstream").Spec.Ports[0]
		if target := portNumber(service.TargetPort, pod); target != port {
			t.Errorf("%s: target port of the Service = %d", values, target)
		}
	}
}

// policyOf returns the network policy and the Pod of the server, which the policy must select.
func policyOf(t *testing.T, all []runtime.Object) (networkingv1.NetworkPolicySpec, corev1.PodTemplateSpec) {
	t.Helper()
	policy := find[*networkingv1.NetworkPolicy](t, all, "slipstream").Spec
	pod := find[*appsv1.Deployment](t, all, "slipstream").Spec.Template
	if !selector(t, &policy.PodSelector).Matches(labels.Set(pod.Labels)) {
		t.Fatalf("policy does not select the server's Pod with the labels %v", pod.Labels)
	}
	return policy, pod
}

// allows reports whether a policy allows a connection of the Pod to any address. A policy without egress rules allows everything.
func allows(policy networkingv1.NetworkPolicySpec, pod corev1.PodTemplateSpec, to connection) bool {
	return !slices.Contains(policy.PolicyTypes, networkingv1.PolicyTypeEgress) ||
		slices.ContainsFunc(policy.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
			return len(rule.To) == 0 && includes(rule.Ports, pod, to)
		})
}

// includes reports whether the ports of a rule include that of a connection. A rule without ports includes all.
func includes(ports []networkingv1.NetworkPolicyPort, pod corev1.PodTemplateSpec, to connection) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(port networkingv1.NetworkPolicyPort) bool {
		protocol := corev1.ProtocolTCP
		if port.Protocol != nil {
			protocol = *port.Protocol
		}
		return protocol == to.protocol && (port.Port == nil || portNumber(*port.Port, pod) == to.port)
	})
}

// portNumber returns the number of a port, which may be a name of a port of the Pod.
func portNumber(port intstr.IntOrString, pod corev1.PodTemplateSpec) int32 {
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
