// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

// authorityInjections are the annotations by which an object asks a controller for the caBundle of this cluster. A
// person writes them, so they are content; what the controller answers is not, and would be wrong in another cluster.
var authorityInjections = [...]string{
	"cert-manager.io/inject-apiserver-ca",
	"cert-manager.io/inject-ca-from",
	"cert-manager.io/inject-ca-from-secret",
	"service.beta.openshift.io/inject-cabundle",
}

// dropInjectedAuthority removes each caBundle that a controller fills in: of an APIService, of the webhooks of an
// admission configuration, of the conversion webhook of a CustomResourceDefinition.
func dropInjectedAuthority(object, metadata map[string]any) {
	if !asksForAuthority(metadata) {
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

func asksForAuthority(metadata map[string]any) bool {
	annotations := mapAt(metadata, "annotations")
	for _, key := range authorityInjections {
		if textAt(annotations, key) != "" {
			return true
		}
	}
	return false
}

// AuthorityIsInjected tells whether annotations ask a controller for the caBundle of an object.
func AuthorityIsInjected(annotations map[string]string) bool {
	for _, key := range authorityInjections {
		if annotations[key] != "" {
			return true
		}
	}
	return false
}
