// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package objectcopy

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
)

// noHost says why what answers for hosts has no copy.
const noHost = "no host of its own"

// gateway gives a Gateway listeners for hosts of its own, and no addresses: what stands behind it chooses them. A listener without a
// host stays, as the hosts are those of the routes then. Of listeners that would be the same, which an API server refuses, the first
// stays. A Gateway that is left without listeners has no copy.
func (t Target) gateway(copied *unstructured.Unstructured, spec map[string]any, source string) string {
	delete(spec, "addresses")
	delete(spec, "defaultScope") // Routes of everybody would attach to it.
	t.moveReferences(spec, source)
	if t.Host == nil {
		return ""
	}
	withoutPublicName(copied)
	withoutAnnotations(copied, isPublicAddress)
	annotations := mapOf(mapOf(spec["infrastructure"])["annotations"])
	maps.DeleteFunc(annotations, func(key string, _ any) bool { return isPublicName(key) })
	seen := sets.New[string]()
	keep(spec, "listeners", func(item any) bool {
		listener := mapOf(item)
		if host, _ := listener["hostname"].(string); host != "" {
			if host = t.Host(copied, host); host == "" {
				return false
			}
			listener["hostname"] = host
		}
		is := fmt.Sprint(listener["port"], listener["protocol"], listener["hostname"])
		defer seen.Insert(is)
		return !seen.Has(is)
	})
	if spec["listeners"] == nil {
		return noHost
	}
	return ""
}

// route gives an HTTPRoute or a GRPCRoute hosts of its own, and lets redirects between its hosts lead to them. One without hosts answers
// for all hosts of its Gateways, and has no copy. To a service mesh, whose routes are about Services, hosts do not matter.
func (t Target) route(copied *unstructured.Unstructured, spec map[string]any, source string) string {
	t.moveReferences(spec, source)
	if t.Host != nil {
		delete(spec, "useDefaultGateways") // They are production's, too.
	}
	if parents := listOf(spec["parentRefs"]); t.Host == nil || len(parents) > 0 && !slices.ContainsFunc(parents, isNoService) {
		return ""
	}
	withoutPublicName(copied)
	own := map[string]string{}
	var hosts []any
	for _, item := range listOf(spec["hostnames"]) {
		before, _ := item.(string)
		if before == "" {
			continue
		}
		if own[before] = t.Host(copied, before); own[before] != "" && !slices.Contains(hosts, any(own[before])) {
			hosts = append(hosts, own[before])
		}
	}
	if len(hosts) == 0 {
		return noHost
	}
	spec["hostnames"] = hosts
	for _, rule := range listOf(spec["rules"]) {
		redirect(mapOf(rule), own)
		for _, backend := range listOf(mapOf(rule)["backendRefs"]) {
			redirect(mapOf(backend), own)
		}
	}
	return ""
}

// isNoService says whether a route attaches to something else than a Service.
func isNoService(parent any) bool {
	group, isGiven := mapOf(parent)["group"]
	return !isGiven || group != "" || mapOf(parent)["kind"] != "Service"
}

// redirect lets redirects to hosts lead to those that stand in their places. Where there is none, they lead to the host that is asked.
func redirect(filtered map[string]any, own map[string]string) {
	for _, filter := range listOf(filtered["filters"]) {
		to := mapOf(mapOf(filter)["requestRedirect"])
		before, _ := to["hostname"].(string)
		switch host, known := own[before]; {
		case !known:
		case host == "":
			delete(to, "hostname")
		default:
			to["hostname"] = host
		}
	}
}

// moveReferences lets what objects of the Gateway API refer to, or admit, in the namespace of the source be in that of the copy. In
// all of them, a namespace has the name namespace, and a selector of namespaces the name selector.
func (t Target) moveReferences(value any, source string) {
	for _, item := range listOf(value) {
		t.moveReferences(item, source)
	}
	for name, field := range mapOf(value) {
		switch name {
		case "selector":
			t.moveSelector(mapOf(field), source)
		case "namespace":
			if field == source {
				mapOf(value)[name] = t.Namespace
			}
		case "infrastructure": // Refers to its own namespace only, and has labels and annotations.
		default:
			t.moveReferences(field, source)
		}
	}
}
