// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package installcheck

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/cert"

	"github.com/configbutler/slipstream/pkg/serving/certificates"
)

const (
	apiServiceName = certificates.APIServiceName
	webhookName    = certificates.WebhookConfigurationName

	// reinstall restores removed objects.
	reinstall = "run helm upgrade, or kubectl apply -f artifacts/install.yaml"
)

var (
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	webhooks    = schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations",
	}
)

// checkAPIServer checks that kube-apiserver responds.
func (c *Checker) checkAPIServer(ctx context.Context) (string, error) {
	version, err := c.Discovery.ServerVersionWithContext(ctx)
	if err != nil {
		return "", failure{err, "check that this machine or Pod can connect to kube-apiserver with this account"}
	}
	return version.GitVersion + " responds", nil
}

// checkAPIService checks that kube-apiserver forwards requests to this server.
func (c *Checker) checkAPIService(ctx context.Context) (string, error) {
	object, err := c.apiService(ctx)
	if err != nil {
		return "", err
	}
	namespace, _, _ := unstructured.NestedString(object.Object, "spec", "service", "namespace")
	name, found, _ := unstructured.NestedString(object.Object, "spec", "service", "name")
	if !found {
		return "", failure{
			errors.New(certificates.ServedByDefinitions), certificates.MakeItServed,
		}
	}
	if namespace != c.Namespace {
		return "", failure{
			fmt.Errorf("%s is served from the namespace %s, not from %s", apiServiceName, namespace, c.Namespace),
			"check that namespace instead: a cluster has one installation",
		}
	}
	if err := c.available(object); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s is available, served by the Service %s/%s", apiServiceName, namespace, name), nil
}

// available returns an error unless kube-apiserver considers the APIService available.
func (c *Checker) available(object *unstructured.Unstructured) error {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, each := range conditions {
		condition, _ := each.(map[string]any)
		if condition["type"] != "Available" {
			continue
		}
		if condition["status"] == string(metav1.ConditionTrue) {
			return nil
		}
		return failure{fmt.Errorf("not available: %v: %v", condition["reason"], condition["message"]), c.unavailable(condition["reason"])}
	}
	return failure{errors.New("kube-apiserver has not checked it yet"), "check the log of kube-apiserver"}
}

// unavailable returns the next step for the reason why an APIService is not available.
func (c *Checker) unavailable(reason any) string {
	switch reason {
	case "ServiceNotFound":
		return reinstall
	case "MissingEndpoints", "EndpointsNotFound":
		return fmt.Sprintf("no Pod is ready: kubectl -n %[1]s get pods; kubectl -n %[1]s logs deploy/slipstream", c.Namespace)
	case "FailedDiscoveryCheck":
		return "kube-apiserver cannot connect to the Pods or does not trust their certificate: " +
			"check that firewalls and NetworkPolicies allow connections to their port, usually 10250, and " +
			"kubectl -n " + c.Namespace + " logs deploy/slipstream"
	}
	return fmt.Sprintf("kubectl -n %s logs deploy/slipstream", c.Namespace)
}

// checkCertificate returns which authorities kube-apiserver trusts. That the served certificate is trusted follows from
// the APIService's availability.
func (c *Checker) checkCertificate(ctx context.Context) (string, error) {
	object, err := c.apiService(ctx)
	if err != nil {
		return "", err
	}
	if insecure, _, _ := unstructured.NestedBool(object.Object, "spec", "insecureSkipTLSVerify"); insecure {
		return "", failure{errors.New("kube-apiserver trusts any certificate (insecureSkipTLSVerify)"), reinstall}
	}
	text, _, _ := unstructured.NestedString(object.Object, "spec", "caBundle")
	bundle, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", failure{fmt.Errorf("caBundle: %w", err), reinstall}
	}
	authorities, err := cert.ParseCertsPEM(bundle)
	if err != nil {
		return "", failure{fmt.Errorf("caBundle: %w", err), c.serverWrites()}
	}
	return c.lasting(authorities)
}

// lasting returns how long the authorities are valid, and an error if none is.
func (c *Checker) lasting(authorities []*x509.Certificate) (string, error) {
	var last time.Time
	for _, authority := range authorities {
		if authority.NotAfter.After(last) {
			last = authority.NotAfter
		}
	}
	day := last.UTC().Format(time.DateOnly)
	if !last.After(c.Clock.Now()) {
		return "", failure{fmt.Errorf("the last authority that kube-apiserver trusts expired on %s", day), c.serverWrites()}
	}
	return "the authorities that kube-apiserver trusts are valid until " + day, nil
}

func (c *Checker) serverWrites() string {
	return "the server writes it, and its log says why it failed: kubectl -n " + c.Namespace + " logs deploy/slipstream"
}

// checkAttribution checks that kube-apiserver can reach the attribution webhook, if it is installed. Failures are
// otherwise invisible, because the webhook's failure policy ignores them.
func (c *Checker) checkAttribution(ctx context.Context) (string, error) {
	object, err := c.Dynamic.Resource(webhooks).Get(ctx, webhookName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "the webhook " + webhookName + " does not exist, so commits name users only if kube-apiserver sends audit events", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the webhook: %w", err)
	}
	hooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
	if len(hooks) == 0 {
		return "", failure{fmt.Errorf("kube-apiserver sends no admission reviews of changes: %s has no webhooks", webhookName), reinstall}
	}
	for _, each := range hooks {
		hook, _ := each.(map[string]any)
		if err := c.checkReachable(hook); err != nil {
			return "", err
		}
	}
	return "kube-apiserver reports changes through the webhook " + webhookName, nil
}

// checkReachable returns an error if a webhook does not reach this server, by its Service or by the aggregator.
func (c *Checker) checkReachable(hook map[string]any) error {
	namespace, behindService, _ := unstructured.NestedString(hook, "clientConfig", "service", "namespace")
	name, _, _ := unstructured.NestedString(hook, "clientConfig", "service", "name")
	bundle, _, _ := unstructured.NestedString(hook, "clientConfig", "caBundle")
	switch {
	case !behindService || namespace == metav1.NamespaceDefault && name == "kubernetes":
	case namespace != c.Namespace:
		return failure{
			fmt.Errorf("kube-apiserver reports changes to the Service %s/%s, not to the server in %s", namespace, name, c.Namespace), reinstall,
		}
	case bundle == "":
		return failure{errors.New("kube-apiserver does not trust the server that the webhook names: it has no caBundle"), c.serverWrites()}
	}
	return nil
}

func (c *Checker) apiService(ctx context.Context) (*unstructured.Unstructured, error) {
	object, err := c.Dynamic.Resource(apiServices).Get(ctx, apiServiceName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, failure{errors.New(apiServiceName + " is not registered"), reinstall}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the APIService: %w", err)
	}
	return object, nil
}
