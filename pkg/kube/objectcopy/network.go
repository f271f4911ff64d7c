// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package objectcopy

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// service removes the network addresses of a Service, even those that a user chose: an address or a node port can be
// used only once. A headless Service stays headless.
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
		// Only Services that are reachable from outside are allowed to have it.
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

// withoutPublicName removes the annotations that give an object a DNS name by external-dns.
func withoutPublicName(copied *unstructured.Unstructured) { withoutAnnotations(copied, isPublicName) }

func isPublicName(annotation string) bool {
	return strings.HasPrefix(annotation, "external-dns.") && strings.HasSuffix(annotation, "hostname")
}

// isPublicAddress reports whether external-dns reads the target of DNS names from an annotation: with a Gateway of
// production, this is production.
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

// ingress gives an Ingress its own hosts. An Ingress that is left without hosts is omitted: it would serve all hosts.
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

// certificate replaces the hosts of a certificate by those of the copy, and reports whether the certificate is still
// used.
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

// policy lets a NetworkPolicy admit the namespace of the copy instead of the source. Its pod selectors, other
// namespaces and address blocks are unchanged.
func (t Target) policy(spec map[string]any, source string) {
	for rules, peers := range map[string]string{"ingress": "from", "egress": "to"} {
		for _, rule := range listOf(spec[rules]) {
			for _, peer := range listOf(mapOf(rule)[peers]) {
				t.moveSelector(mapOf(mapOf(peer)["namespaceSelector"]), source)
			}
		}
	}
}
