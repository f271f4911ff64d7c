// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// The port is open to all unless values list peers, and outgoing connections are not restricted.
func TestIngress(t *testing.T) {
	for values, peers := range map[string][]networkingv1.NetworkPolicyPeer{
		"{}": nil,
		`{networkPolicy: {ingress: {from: [{ipBlock: {cidr: 10.0.0.0/28}}]}}}`: block("10.0.0.0/28"),
	} {
		got := find[*networkingv1.NetworkPolicy](t, objects(t, values), "slipstream").Spec
		want := []networkingv1.NetworkPolicyIngressRule{{Ports: ports(corev1.ProtocolTCP, intstr.FromString("https")), From: peers}}
		if diff := cmp.Diff(want, got.Ingress); diff != "" {
			t.Errorf("%s:\n%s", values, diff)
		}
		if diff := cmp.Diff([]networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, got.PolicyTypes); diff != "" {
			t.Errorf("%s:\n%s", values, diff)
		}
	}
}

func TestEgress(t *testing.T) {
	got := find[*networkingv1.NetworkPolicy](t, objects(t, `
storage: {backend: etcd3, etcd: {servers: ["https://a:2379", "https://b:2379", "https://c:12379"]}}
networkPolicy:
  egress:
    restrict: true
    apiServer: {to: [{ipBlock: {cidr: 10.0.0.0/28}}]}
    rules: [{to: [{ipBlock: {cidr: 10.1.0.0/16}}], ports: [{port: 8443}]}]
`), "slipstream").Spec
	want := []networkingv1.NetworkPolicyEgressRule{
		{Ports: append(ports(corev1.ProtocolUDP, intstr.FromInt32(53)), ports(corev1.ProtocolTCP, intstr.FromInt32(53))...)},
		{Ports: ports(corev1.ProtocolTCP, intstr.FromInt32(443), intstr.FromInt32(6443)), To: block("10.0.0.0/28")},
		{Ports: ports(corev1.ProtocolTCP, intstr.FromInt32(22), intstr.FromInt32(443))},
		{Ports: ports(corev1.ProtocolTCP, intstr.FromInt32(2379), intstr.FromInt32(12379))},
		{Ports: []networkingv1.NetworkPolicyPort{{Port: ptr.To(intstr.FromInt32(8443))}}, To: block("10.1.0.0/16")},
	}
	if diff := cmp.Diff(want, got.Egress); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		got.PolicyTypes); diff != "" {
		t.Error(diff)
	}
}

func ports(protocol corev1.Protocol, numbers ...intstr.IntOrString) []networkingv1.NetworkPolicyPort {
	var all []networkingv1.NetworkPolicyPort
	for _, number := range numbers {
		all = append(all, networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &number})
	}
	return all
}

func block(addresses string) []networkingv1.NetworkPolicyPeer {
	return []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: addresses}}}
}
