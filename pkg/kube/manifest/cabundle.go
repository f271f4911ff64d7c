// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

// caInjectionAnnotations are the annotations that request a controller to inject this cluster's caBundle. They are
// content. The injected bundle is not: it would be wrong in another cluster.
var caInjectionAnnotations = [...]string{
	"cert-manager.io/inject-apiserver-ca",
	"cert-manager.io/inject-ca-from",
	"cert-manager.io/inject-ca-from-secret",
	"service.beta.openshift.io/inject-cabundle",
}

// dropInjectedCABundle removes every caBundle that a controller injects: in an APIService, in the webhooks of an
// admission configuration, and in the conversion webhook of a CustomResourceDefinition.
func dropInjectedCABundle(object, metadata map[string]any) {
	if !requestsCABundle(metadata) {
		return
	}
	spec := open(object, "spec")
	delete(spec, "caBundle")
	conversion := open(open(spec, "conversion"), "webhook")
	delete(open(conversion, "clientConfig"), "caBundle")
	for _, webhook := range openEach(object, "webhooks") {
		delete(open(webhook, "clientConfig"), "caBundle")
	}
}

func requestsCABundle(metadata map[string]any) bool {
	annotations := mapAt(metadata, "annotations")
	for _, key := range caInjectionAnnotations {
		if textAt(annotations, key) != "" {
			return true
		}
	}
	return false
}

// HasInjectedCABundle reports whether annotations request a controller to inject an object's caBundle.
func HasInjectedCABundle(annotations map[string]string) bool {
	for _, key := range caInjectionAnnotations {
		if annotations[key] != "" {
			return true
		}
	}
	return false
}
