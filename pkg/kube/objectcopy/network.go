// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package objectcopy

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// service takes away the place that a Service has in the network, whoever chose it: an address or a port of a node can be
// had once. What a headless one is stays.
func (t Target) service(copied *unstructured.Unstructured, spec map[string]any) {
	delete(spec, "externalIPs")
	for _, port := range listOf(spec["ports"]) {
		delete(mapOf(port), "nodePort")
	}
	if t.NoLoadBalancers {
		withoutPublicName(copied)
		withoutLoadBalancer(spec)
	}
	if kind := spec["type"]; kind != "LoadBalancer" && kind != "NodePort" {
		// Only Services that are reached from outside may have it.
		delete(spec, "externalTrafficPolicy")
	}
}

func withoutLoadBalancer(spec map[string]any) {
	if spec["type"] != "LoadBalancer" {
		return
	}
	spec["type"] = "ClusterIP"
	for _, field := range [...]string{"allocateLoadBalancerNodePorts", "loadBalancerClass", "loadBalancerIP", "loadBalancerSourceRanges"} {
		delete(spec, field)
	}
}

// withoutPublicName takes out the annotations by which external-dns gives an object a name in a DNS.
func withoutPublicName(copied *unstructured.Unstructured) { withoutAnnotations(copied, isPublicName) }

func isPublicName(annotation string) bool {
	return strings.HasPrefix(annotation, "external-dns.") && strings.HasSuffix(annotation, "hostname")
}

// isPublicAddress says whether external-dns reads from an annotation where names lead to: with a Gateway of production, to production.
func isPublicAddress(annotation string) bool {
	return strings.HasPrefix(annotation, "external-dns.") && strings.HasSuffix(annotation, "/target")
}

func withoutAnnotations(copied *unstructured.Unstructured, which func(annotation string) bool) {
	annotations := copied.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool { return which(key) })
	if len(annotations) == 0 {
		annotations = nil
	}
	copied.SetAnnotations(annotations)
}

// ingress gives an Ingress hosts of its own. One that is left with none has no copy: without hosts, it would answer for all.
func (t Target) ingress(copied *unstructured.Unstructured, spec map[string]any) string {
	if t.Host == nil {
		return ""
	}
	withoutPublicName(copied)
	delete(spec, "defaultBackend")
	keep(spec, "rules", func(rule any) bool {
		host, _ := mapOf(rule)["host"].(string)
		host = t.Host(copied, host)
		if host != "" {
			mapOf(rule)["host"] = host
		}
		return host != ""
	})
	keep(spec, "tls", func(tls any) bool { return t.certificate(copied, mapOf(tls)) })
	if spec["rules"] == nil {
		return noHost
	}
	return ""
}

// certificate gives a certificate the hosts of the copy, and says whether one is left.
func (t Target) certificate(ingress *unstructured.Unstructured, tls map[string]any) bool {
	var hosts []any
	for _, host := range listOf(tls["hosts"]) {
		text, _ := host.(string)
		if text = t.Host(ingress, text); text != "" {
			hosts = append(hosts, text)
		}
	}
	if len(hosts) == 0 {
		return len(listOf(tls["hosts"])) == 0
	}
	tls["hosts"] = hosts
	return true
}

// policy lets a NetworkPolicy admit the namespace of the copy where it admits that of the source. Which Pods it selects stays, as
// their labels do, and so do other namespaces and blocks of addresses.
func (t Target) policy(spec map[string]any, source string) {
	for rules, peers := range map[string]string{"ingress": "from", "egress": "to"} {
		for _, rule := range listOf(spec[rules]) {
			for _, peer := range listOf(mapOf(rule)[peers]) {
				t.moveSelector(mapOf(mapOf(peer)["namespaceSelector"]), source)
			}
		}
	}
}
