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

// noHost is the reason for omitting an object that would have no host.
const noHost = "no host of its own"

// gateway gives a Gateway the listeners of its own hosts, and removes its addresses, which the implementation assigns.
// A listener without a host stays: its hosts are those of the routes. Of listeners that become equal, which an API
// server rejects, only the first stays. A Gateway without listeners is omitted.
func (t Target) gateway(copied *unstructured.Unstructured, spec map[string]any, source string) string {
	delete(spec, "addresses")
	delete(spec, "defaultScope") // Routes of all namespaces would attach to it.
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

// route gives an HTTPRoute or a GRPCRoute its own hosts, and adjusts redirects between its hosts. A route without
// hosts, which would serve all hosts of its Gateways, is omitted. Hosts do not matter for the routes of a service mesh,
// whose parents are Services.
func (t Target) route(copied *unstructured.Unstructured, spec map[string]any, source string) string {
	t.moveReferences(spec, source)
	if t.Host != nil {
		delete(spec, "useDefaultGateways") // They serve production, too.
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

// isNoService reports whether a route's parent is not a Service.
func isNoService(parent any) bool {
	group, isGiven := mapOf(parent)["group"]
	return !isGiven || group != "" || mapOf(parent)["kind"] != "Service"
}

// redirect replaces the hosts of redirects by those of the copy. Where there is none, a redirect keeps the requested
// host.
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

// moveReferences replaces the source's namespace by that of the copy in references and in namespace selectors of
// Gateway API objects. In all of them, the field of a namespace is called namespace and that of a namespace selector is
// called selector.
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
		case "infrastructure": // Only refers to its own namespace; its keys are those of labels and annotations.
		default:
			t.moveReferences(field, source)
		}
	}
}
