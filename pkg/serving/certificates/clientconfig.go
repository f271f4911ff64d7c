// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"iter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/kube/manifest"
)

// bundle is the part of an object that defines which authorities its client trusts.
type bundle struct {
	// place identifies the bundle.
	place string
	// config is the part of the object that holds the bundle, nil if no client trusts this server by it.
	config      map[string]any
	authorities []*x509.Certificate
	// ours is set if the server maintains the bundle.
	ours bool
}

// clientConfigs returns the client configurations in an object by their location.
func clientConfigs(object *unstructured.Unstructured) iter.Seq2[string, map[string]any] {
	return func(yield func(string, map[string]any) bool) {
		if spec, found, _ := unstructured.NestedFieldNoCopy(object.Object, "spec"); found {
			config, _ := spec.(map[string]any)
			yield("", config)
			return
		}
		webhooks, _, _ := unstructured.NestedFieldNoCopy(object.Object, "webhooks")
		list, _ := webhooks.([]any)
		for index, each := range list {
			webhook, _ := each.(map[string]any)
			config, _ := webhook["clientConfig"].(map[string]any)
			if !yield(fmt.Sprintf("/%d", index), config) {
				return
			}
		}
	}
}

// automanaged is the label of APIServices that kube-apiserver creates for CustomResourceDefinitions.
const automanaged = "kube-aggregator.kubernetes.io/automanaged"

// Messages about an APIService that kube-apiserver created, and the remedy.
const (
	ServedByDefinitions = "APIService " + APIServiceName +
		" is served by CustomResourceDefinitions of this group and version, not by this server"
	MakeItServed = "delete them, or remove the label " + automanaged + " from the APIService and apply it again"
)

// bundleOf returns the bundle of a client of this server, and a message about why the server does not maintain it.
func (r *registrations) bundleOf(object *unstructured.Unstructured, config map[string]any) (bundle, string) {
	service, _ := config["service"].(map[string]any)
	encoded, _ := config["caBundle"].(string)
	text, _ := base64.StdEncoding.DecodeString(encoded)
	found := bundle{config: config, authorities: parseBundle(text), ours: true}
	switch {
	case service == nil && object.GetName() == APIServiceName:
		return bundle{}, ServedByDefinitions + ": " + MakeItServed
	case !r.leadsHere(service):
		if object.GetName() == APIServiceName {
			return bundle{}, fmt.Sprintf("it refers to the Service %v/%v, and the Service of this server is %s (--serving-service)",
				service["namespace"], service["name"], r.service)
		}
		// The webhook behind the aggregator leads to the API server itself.
		return bundle{}, ""
	case config["insecureSkipTLSVerify"] == true:
		return bundle{}, "it has insecureSkipTLSVerify, so its client accepts any certificate"
	case manifest.HasInjectedCABundle(object.GetAnnotations()):
		found.ours = false
		return found, "one of its annotations lets another controller write the bundle"
	}
	return found, ""
}

// leadsHere reports whether a Service is that of this server.
func (r *registrations) leadsHere(service map[string]any) bool {
	return service["namespace"] == r.service.Namespace && service["name"] == r.service.Name
}

// absence returns why requests for the kinds do not reach this server, if they do not. The APIService is nil if it does
// not exist.
func (r *registrations) absence(apiService *unstructured.Unstructured) string {
	if apiService == nil {
		return absent
	}
	found, _, _ := unstructured.NestedFieldNoCopy(apiService.Object, "spec", "service")
	service, _ := found.(map[string]any)
	switch {
	case service == nil:
		return byDefinitions
	case !r.leadsHere(service):
		return byAnotherService
	}
	return ""
}
