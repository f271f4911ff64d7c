// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/discovery"
	"k8s.io/component-base/tracing"
	"k8s.io/klog/v2"
)

// policies are the admission plugins that read types of the cluster, with the type.
var policies = []struct{ plugin, resource string }{
	{validating.PluginName, "validatingadmissionpolicies"},
	{mutating.PluginName, "mutatingadmissionpolicies"},
}

// omitUnserved turns off what reads types that an older version of Kubernetes does not serve: the server would never be ready. It replaces the
// options that it changes.
func omitUnserved(ctx context.Context, recommended *genericoptions.RecommendedOptions) error {
	// It is applied again, together with the other options.
	cluster := &genericapiserver.RecommendedConfig{Config: genericapiserver.Config{TracerProvider: tracing.NewNoopTracerProvider()}}
	if err := recommended.CoreAPI.ApplyTo(cluster); err != nil {
		return fmt.Errorf("configuring the client of the cluster: %w", err)
	}
	if cluster.ClientConfig == nil {
		return nil
	}
	client, err := discovery.NewDiscoveryClientForConfig(cluster.ClientConfig)
	if err != nil {
		return fmt.Errorf("creating a client of discovery: %w", err)
	}
	served, err := resources(client, admissionv1.SchemeGroupVersion)
	if err != nil {
		return err
	}
	chosen := *recommended.Admission
	chosen.DisablePlugins = slices.Clone(chosen.DisablePlugins)
	for _, each := range policies {
		if !slices.Contains(served, each.resource) && !slices.Contains(chosen.DisablePlugins, each.plugin) {
			klog.FromContext(ctx).Info("Policies of this type do not apply to the API, because the cluster does not serve them", "type", each.plugin)
			chosen.DisablePlugins = append(chosen.DisablePlugins, each.plugin)
		}
	}
	recommended.Admission = &chosen
	if served, err = resources(client, flowcontrolv1.SchemeGroupVersion); err != nil {
		return err
	}
	if len(served) == 0 && recommended.Features.EnablePriorityAndFairness {
		klog.FromContext(ctx).Info("Requests are limited by their number only, because the cluster does not serve flow schemas", "version",
			flowcontrolv1.SchemeGroupVersion)
		features := *recommended.Features
		features.EnablePriorityAndFairness = false
		recommended.Features = &features
	}
	return nil
}

// resources returns the names of the resources that the cluster serves in a version, none if it does not serve the version.
func resources(client discovery.DiscoveryInterface, version schema.GroupVersion) ([]string, error) {
	list, err := client.ServerResourcesForGroupVersion(version.String())
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the types of %s: %w", version, err)
	}
	return names(list), nil
}

func names(list *metav1.APIResourceList) []string {
	var found []string
	for _, resource := range list.APIResources {
		found = append(found, resource.Name)
	}
	return found
}
