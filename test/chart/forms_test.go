// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"strings"
	"testing"
)

// Values with an invalid format are rejected with an explanation of the valid format.
func TestInvalidFormats(t *testing.T) {
	output := refused(t, `
image: {repository: "registry.example.com/slipstream:v1"}
storage: {backend: etcd3, persistence: {size: 10GB}, etcd: {servers: ["etcd-0:2379", "https://etcd-1:2379"]}}
resources: {requests: {cpu: 1 core}, limits: {memory: 64kI}}
metrics: {serviceMonitor: {interval: 30}}
tracing: {endpoint: "http://collector:4317"}
page: {url: "http://page.example", image: {repository: "registry.example.com/page:v1"}, resources: {limits: {memory: 1 GB}}}
`)
	for _, message := range []string{
		`image.repository: "registry.example.com/slipstream:v1" has a tag; set image.tag instead`,
		`storage.etcd.servers: "etcd-0:2379" is not the URL of a server; want https://HOST:PORT`,
		`storage.persistence.size: "10GB" is not a quantity; want a number, and a unit as in 10Gi`,
		`resources.requests.cpu: "1 core" is not a quantity`,
		`resources.limits.memory: "64kI" is not a quantity`,
		`tracing.endpoint: "http://collector:4317" is not the address of a collector; want HOST:PORT`,
		`page.url: "http://page.example" is not an https URL without a path; want https://HOST or https://HOST:PORT`,
		`page.image.repository: "registry.example.com/page:v1" has a tag; set page.image.tag instead`,
		`page.resources.limits.memory: "1 GB" is not a quantity`,
		`metrics.serviceMonitor.interval: "30" is not a duration; want a number and a unit, such as 30s`,
	} {
		// Both versions of helm print it.
		if strings.Count(output, message) != 2 {
			t.Errorf("%q is missing in\n%s", message, output)
		}
	}
	if strings.Contains(output, "etcd-1") {
		t.Errorf("valid value was rejected:\n%s", output)
	}
}

func TestInvalidURLs(t *testing.T) {
	for _, url := range []string{
		"page.example", "https://", "https://page.example/", "https://page.example/path", "https://Page.example", "https://a@page.example",
		"https://page.example?a", "https://page.example:https", "https://page_example",
	} {
		if output := refused(t, `{page: {url: "`+url+`"}}`); strings.Count(output, `page.url: "`+url+`" is not an https URL`) != 2 {
			t.Errorf("%s: %s", url, output)
		}
	}
}

func TestValidFormats(t *testing.T) {
	for _, values := range []string{
		`{image: {repository: "registry.example.com:5000/team/slipstream"}}`,
		`{storage: {backend: etcd3, etcd: {servers: ["http://[::1]:2379", "https://etcd.example.com:2379"]}}}`,
		`{storage: {persistence: {size: 1.5Ti}}, resources: {requests: {cpu: 0.5, memory: 262144Ki}, limits: {cpu: 1500m, memory: 1e9}}}`,
		`{metrics: {serviceMonitor: {enabled: true, interval: 1m30s}}, resources: {limits: null}}`,
		`{page: {enabled: true, url: "https://page.example.com:8443", tls: {mode: secret}}}`,
		`{page: {enabled: true, url: "https://[fd00::1]:8443", tls: {mode: secret}}}`,
	} {
		render(t, values)
	}
}
