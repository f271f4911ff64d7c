// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Parent is a Gateway, or listeners of it, that a route attaches to.
type Parent struct {
	// Gateway is the name of the Gateway, in the namespace of the route.
	Gateway string
	// Listener restricts the parent to one listener; empty means all.
	Listener string
	// Port restricts the parent to the listeners of one port; 0 means all.
	Port int64
}

// Gateways returns the Gateways in its own namespace that an HTTPRoute or a GRPCRoute attaches to. It fails on an
// object that does not fit its type.
func Gateways(route *unstructured.Unstructured) ([]Parent, error) {
	var content struct {
		Spec gatewayv1.CommonRouteSpec `json:"spec"`
	}
	if err := read(route, &content); err != nil {
		return nil, err
	}
	f := finder{namespace: route.GetNamespace()}
	var parents []Parent
	for _, parent := range content.Spec.ParentRefs {
		group, kind := ptr.Deref(parent.Group, gatewayv1.GroupName), ptr.Deref(parent.Kind, "Gateway")
		if group == gatewayv1.GroupName && kind == "Gateway" && f.isHere(parent.Namespace) {
			parents = append(parents, Parent{
				Gateway: string(parent.Name), Listener: string(ptr.Deref(parent.SectionName, "")), Port: int64(ptr.Deref(parent.Port, 0)),
			})
		}
	}
	return parents, nil
}

// isHere reports whether a reference is to the namespace of the referring object.
func (f *finder) isHere(namespace *gatewayv1.Namespace) bool {
	return namespace == nil || string(*namespace) == f.namespace
}

// parents adds the Services that are the parents of a service mesh's route.
func (f *finder) parents(spec *gatewayv1.CommonRouteSpec) {
	for i, parent := range spec.ParentRefs {
		if ptr.Deref(parent.Group, gatewayv1.GroupName) == "" && ptr.Deref(parent.Kind, "") == "Service" && f.isHere(parent.Namespace) {
			f.add(Service, string(parent.Name), path{}.field("spec").index("parentRefs", i), use{})
		}
	}
}

// routeTo adds a Service that a route leads to.
func (f *finder) routeTo(ref *gatewayv1.BackendObjectReference, at path) {
	if ptr.Deref(ref.Group, "") == "" && ptr.Deref(ref.Kind, "Service") == "Service" && f.isHere(ref.Namespace) {
		f.add(Service, string(ref.Name), at, use{})
	}
}

// httpRoute adds the Services that an HTTPRoute forwards to, mirrors requests to, or uses for external authorization.
func (f *finder) httpRoute(spec *gatewayv1.HTTPRouteSpec) {
	f.parents(&spec.CommonRouteSpec)
	for i := range spec.Rules {
		rule, at := &spec.Rules[i], path{}.field("spec").index("rules", i)
		f.httpFilters(rule.Filters, at)
		for j := range rule.BackendRefs {
			at := at.index("backendRefs", j)
			f.routeTo(&rule.BackendRefs[j].BackendObjectReference, at)
			f.httpFilters(rule.BackendRefs[j].Filters, at)
		}
	}
}

func (f *finder) httpFilters(filters []gatewayv1.HTTPRouteFilter, at path) {
	for i := range filters {
		at := at.index("filters", i)
		if mirror := filters[i].RequestMirror; mirror != nil {
			f.routeTo(&mirror.BackendRef, at.field("requestMirror", "backendRef"))
		}
		if auth := filters[i].ExternalAuth; auth != nil {
			f.routeTo(&auth.BackendRef, at.field("externalAuth", "backendRef"))
		}
	}
}

// grpcRoute adds the Services that a GRPCRoute forwards or mirrors requests to.
func (f *finder) grpcRoute(spec *gatewayv1.GRPCRouteSpec) {
	f.parents(&spec.CommonRouteSpec)
	for i := range spec.Rules {
		rule, at := &spec.Rules[i], path{}.field("spec").index("rules", i)
		f.grpcFilters(rule.Filters, at)
		for j := range rule.BackendRefs {
			at := at.index("backendRefs", j)
			f.routeTo(&rule.BackendRefs[j].BackendObjectReference, at)
			f.grpcFilters(rule.BackendRefs[j].Filters, at)
		}
	}
}

func (f *finder) grpcFilters(filters []gatewayv1.GRPCRouteFilter, at path) {
	for i := range filters {
		if mirror := filters[i].RequestMirror; mirror != nil {
			f.routeTo(&mirror.BackendRef, at.index("filters", i).field("requestMirror", "backendRef"))
		}
	}
}

// gateway adds the Secrets with the certificates of a Gateway, the ConfigMaps and Secrets with its certificate
// authorities, and its parameters.
func (f *finder) gateway(spec *gatewayv1.GatewaySpec) {
	at := path{}.field("spec")
	for i := range spec.Listeners {
		if tls := spec.Listeners[i].TLS; tls != nil {
			for j := range tls.CertificateRefs {
				f.certificate(&tls.CertificateRefs[j], at.index("listeners", i).field("tls").index("certificateRefs", j))
			}
		}
	}
	if spec.Infrastructure != nil && spec.Infrastructure.ParametersRef != nil {
		ref := spec.Infrastructure.ParametersRef
		f.object(string(ref.Group), string(ref.Kind), ref.Name, at.field("infrastructure", "parametersRef"))
	}
	if spec.TLS == nil {
		return
	}
	at = at.field("tls")
	if spec.TLS.Backend != nil && spec.TLS.Backend.ClientCertificateRef != nil {
		f.certificate(spec.TLS.Backend.ClientCertificateRef, at.field("backend", "clientCertificateRef"))
	}
	if frontend := spec.TLS.Frontend; frontend != nil {
		at := at.field("frontend")
		f.authorities(frontend.Default.Validation, at.field("default", "validation"))
		for i := range frontend.PerPort {
			f.authorities(frontend.PerPort[i].TLS.Validation, at.index("perPort", i).field("tls", "validation"))
		}
	}
}

func (f *finder) certificate(ref *gatewayv1.SecretObjectReference, at path) {
	if f.isHere(ref.Namespace) {
		f.object(string(ptr.Deref(ref.Group, "")), string(ptr.Deref(ref.Kind, "Secret")), string(ref.Name), at)
	}
}

func (f *finder) authorities(of *gatewayv1.FrontendTLSValidation, at path) {
	if of == nil {
		return
	}
	for i, ref := range of.CACertificateRefs {
		if f.isHere(ref.Namespace) {
			f.object(string(ref.Group), string(ref.Kind), string(ref.Name), at.index("caCertificateRefs", i))
		}
	}
}

// object adds a ConfigMap or a Secret, and ignores other kinds.
func (f *finder) object(group, kind, name string, at path) {
	if t := Type(kind); group == "" && (t == ConfigMap || t == Secret) {
		f.add(t, name, at, use{})
	}
}
