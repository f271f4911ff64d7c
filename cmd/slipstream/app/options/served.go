// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"context"
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/discovery"
	"k8s.io/component-base/tracing"
	"k8s.io/klog/v2"
)

const (
	// fairness is the name in the log of what limits requests by flow schemas.
	fairness = "APIPriorityAndFairness"
	// servedPeriod is the time between two readings of discovery while something is turned off.
	servedPeriod = time.Minute
	// servedReadings is how many readings in a row must have what was turned off: kube-apiservers of two versions respond in turn while
	// they are replaced one after the other.
	servedReadings = 3
)

// optional is what is turned off in clusters that do not serve the types that it reads. The server would never be ready.
var optional = []struct {
	name string
	// resource of version is the type.
	version  schema.GroupVersion
	resource string
}{
	{validating.PluginName, admissionv1.SchemeGroupVersion, "validatingadmissionpolicies"},
	{mutating.PluginName, admissionv1.SchemeGroupVersion, "mutatingadmissionpolicies"},
	{fairness, flowcontrolv1.SchemeGroupVersion, "flowschemas"},
}

// Unserved is what the server has turned off, because the cluster is of an older version of Kubernetes.
type Unserved struct {
	client discovery.DiscoveryInterface
	names  []string
	// period is the time between two readings of discovery.
	period time.Duration
}

// omitUnserved turns off what reads types that the cluster does not serve. It replaces the options that it changes. Without a cluster it
// returns nil.
func omitUnserved(ctx context.Context, recommended *genericoptions.RecommendedOptions) (*Unserved, error) {
	// It is applied again, together with the other options.
	cluster := &genericapiserver.RecommendedConfig{Config: genericapiserver.Config{TracerProvider: tracing.NewNoopTracerProvider()}}
	if err := recommended.CoreAPI.ApplyTo(cluster); err != nil {
		return nil, fmt.Errorf("configuring the client of the cluster: %w", err)
	}
	if cluster.ClientConfig == nil {
		return nil, nil
	}
	client, err := discovery.NewDiscoveryClientForConfig(cluster.ClientConfig)
	if err != nil {
		return nil, fmt.Errorf("creating a client of discovery: %w", err)
	}
	names, err := unserved(client)
	if err != nil {
		return nil, err
	}
	off := &Unserved{client: client, period: servedPeriod}
	admission, features := *recommended.Admission, *recommended.Features
	admission.DisablePlugins = slices.Clone(admission.DisablePlugins)
	for _, name := range names {
		switch {
		case name == fairness && !features.EnablePriorityAndFairness, slices.Contains(admission.DisablePlugins, name):
			continue // It is off anyway.
		case name == fairness:
			features.EnablePriorityAndFairness = false
		case slices.Contains(admission.EnablePlugins, name):
			return nil, fmt.Errorf("--enable-admission-plugins has %s, but the cluster does not serve its policies in v1", name)
		default:
			admission.DisablePlugins = append(admission.DisablePlugins, name)
		}
		off.names = append(off.names, name)
		klog.FromContext(ctx).Info("Turned off what the cluster does not serve the types of", "name", name)
	}
	recommended.Admission, recommended.Features = &admission, &features
	return off, nil
}

// unserved returns the names of what the cluster does not serve the types of. Failures are errors: nothing may be turned off in a cluster
// that serves its types.
func unserved(client discovery.DiscoveryInterface) ([]string, error) {
	groups, err := client.ServerGroups()
	if err != nil {
		return nil, fmt.Errorf("reading the API groups of the cluster: %w", err)
	}
	served := map[schema.GroupVersion][]metav1.APIResource{}
	for _, version := range []schema.GroupVersion{admissionv1.SchemeGroupVersion, flowcontrolv1.SchemeGroupVersion} {
		if !slices.Contains(metav1.ExtractGroupVersions(groups), version.String()) {
			continue
		}
		list, err := client.ServerResourcesForGroupVersion(version.String())
		if err != nil {
			return nil, fmt.Errorf("reading the types of %s: %w", version, err)
		}
		served[version] = list.APIResources
	}
	if len(served[admissionv1.SchemeGroupVersion]) == 0 {
		return nil, fmt.Errorf("the cluster does not list %s, which every supported version of Kubernetes serves", admissionv1.SchemeGroupVersion)
	}
	var names []string
	for _, each := range optional {
		if !slices.ContainsFunc(served[each.version], func(of metav1.APIResource) bool { return of.Name == each.resource }) {
			names = append(names, each.name)
		}
	}
	return names, nil
}

// WaitUntilServed waits until the cluster serves something that was turned off, and reports whether it does. It returns false when ctx is
// done, and at once if nothing was turned off.
func (u *Unserved) WaitUntilServed(ctx context.Context) bool {
	if u == nil || len(u.names) == 0 {
		return false
	}
	logger, readings := klog.FromContext(ctx), 0
	err := wait.PollUntilContextCancel(ctx, u.period, false, func(context.Context) (bool, error) {
		names, err := unserved(u.client)
		switch {
		case err != nil:
			logger.Error(err, "Failed to read what the cluster serves, retrying later")
			readings = 0
		case slices.ContainsFunc(u.names, func(off string) bool { return !slices.Contains(names, off) }):
			readings++
		default:
			readings = 0
		}
		return readings == servedReadings, nil
	})
	if err == nil {
		logger.Info("The cluster serves types that were turned off at the start: ending, to start with them", "wereOff", u.names)
	}
	return err == nil
}
