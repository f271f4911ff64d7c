// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// apiServiceName is the name of the APIService with which the server is registered.
var apiServiceName = v1alpha1.SchemeGroupVersion.Version + "." + v1alpha1.GroupName

var (
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	services    = corev1.SchemeGroupVersion.WithResource("services")
)

// registration is how kube-apiserver reaches the server.
type registration struct {
	// namespace and service name its Service. Both are empty if the API is not served by a Service.
	namespace, service string
	port               int64
	// bundle has the authorities of its certificate, in PEM.
	bundle []byte
	// available is the condition Available, nil before kube-apiserver has checked it.
	available *metav1.Condition
}

// readRegistration reads the APIService.
func readRegistration(ctx context.Context, client dynamic.Interface) (*registration, error) {
	object, err := client.Resource(apiServices).Get(ctx, apiServiceName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	const usual = 443
	r := &registration{port: usual}
	r.namespace, _, _ = unstructured.NestedString(object.Object, "spec", "service", "namespace")
	r.service, _, _ = unstructured.NestedString(object.Object, "spec", "service", "name")
	if port, found, _ := unstructured.NestedInt64(object.Object, "spec", "service", "port"); found {
		r.port = port
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	text, _, _ := unstructured.NestedString(object.Object, "spec", "caBundle")
	if r.bundle, err = base64.StdEncoding.DecodeString(text); err != nil {
		return nil, fmt.Errorf("caBundle of the APIService %s: %w", apiServiceName, err)
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, each := range conditions {
		fields, _ := each.(map[string]any)
		if fields["type"] != "Available" {
			continue
		}
		text := func(name string) string { value, _ := fields[name].(string); return value }
		r.available = &metav1.Condition{
			Type: "Available", Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message"),
		}
	}
	return r, nil
}

// validate checks what is written to files and commands, so that nothing in it is interpreted there. Kubernetes allows a Service any RFC 1123
// label.
func (r *registration) validate() error {
	if r.service == "" {
		return nil
	}
	problems := slices.Concat(
		validation.IsDNS1123Label(r.namespace), validation.IsDNS1123Label(r.service), validation.IsValidPortNum(int(r.port)))
	if len(problems) > 0 {
		return fmt.Errorf("the APIService %s names the Service %q in the namespace %q at the port %d: %s",
			apiServiceName, r.service, r.namespace, r.port, strings.Join(problems, "; "))
	}
	return nil
}

// clusterIP returns the address of the Service.
func (r *registration) clusterIP(ctx context.Context, client dynamic.Interface) (string, error) {
	service, err := client.Resource(services).Namespace(r.namespace).Get(ctx, r.service, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	address, _, _ := unstructured.NestedString(service.Object, "spec", "clusterIP")
	if address == "" || address == corev1.ClusterIPNone {
		return "", fmt.Errorf("the Service %s/%s has no cluster IP: give --address", r.namespace, r.service)
	}
	if net.ParseIP(address) == nil {
		return "", fmt.Errorf("the cluster IP of the Service %s/%s is no address: %q", r.namespace, r.service, address)
	}
	return address, nil
}
