// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// reference matches a reference to a variable in arguments and values. Two dollars escape one.
var reference = regexp.MustCompile(`\$\$|\$\([A-Za-z_][A-Za-z0-9_.-]*\)`)

// environment holds the variables of a container by name, and their names in order.
type environment struct {
	names  []string
	values map[string]string
}

func (e *environment) set(name, value string) {
	if !slices.Contains(e.names, name) {
		e.names = append(e.names, name)
	}
	e.values[name] = value
}

// expand replaces references to variables in a text. References to unknown variables are kept.
func (e *environment) expand(text string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" {
			return "$"
		}
		if value, known := e.values[found[2:len(found)-1]]; known {
			return value
		}
		return found
	})
}

// lines returns the variables as KEY=VALUE.
func (e *environment) lines() []string {
	lines := make([]string, 0, len(e.names))
	for _, name := range e.names {
		lines = append(lines, name+"="+e.values[name])
	}
	return lines
}

// newEnvironment returns the variables of a container, which include the address of the API server.
func newEnvironment(
	ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, container *corev1.Container, apiServer string,
) (*environment, error) {
	e := &environment{values: map[string]string{}}
	e.set("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	e.set("HOSTNAME", pod.Name)
	e.set("KUBERNETES_SERVICE_HOST", apiServer)
	e.set("KUBERNETES_SERVICE_PORT", "443")
	if len(container.EnvFrom) > 0 {
		return nil, fmt.Errorf("container %s: envFrom is not supported", container.Name)
	}
	for _, variable := range container.Env {
		value, err := valueOf(ctx, client, pod, container, variable.ValueFrom)
		if err != nil {
			return nil, fmt.Errorf("variable %s of container %s: %w", variable.Name, container.Name, err)
		}
		if variable.ValueFrom == nil {
			value = e.expand(variable.Value)
		}
		e.set(variable.Name, value)
	}
	return e, nil
}

// valueOf returns a value from its source.
func valueOf(
	ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, container *corev1.Container, from *corev1.EnvVarSource,
) (string, error) {
	switch {
	case from == nil:
		return "", nil
	case from.FieldRef != nil:
		return field(pod, from.FieldRef.FieldPath)
	case from.ResourceFieldRef != nil:
		return resource(container, from.ResourceFieldRef)
	case from.SecretKeyRef != nil:
		secret, err := client.CoreV1().Secrets(pod.Namespace).Get(ctx, from.SecretKeyRef.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return string(secret.Data[from.SecretKeyRef.Key]), nil
	case from.ConfigMapKeyRef != nil:
		configMap, err := client.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, from.ConfigMapKeyRef.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return configMap.Data[from.ConfigMapKeyRef.Key], nil
	}
	return "", fmt.Errorf("unsupported source: %v", from)
}

// field returns a field of the downward API.
func field(pod *corev1.Pod, path string) (string, error) {
	fields := map[string]string{
		"metadata.name":           pod.Name,
		"metadata.namespace":      pod.Namespace,
		"metadata.uid":            string(pod.UID),
		"spec.nodeName":           pod.Spec.NodeName,
		"spec.serviceAccountName": pod.Spec.ServiceAccountName,
		"status.podIP":            pod.Status.PodIP,
	}
	value, known := fields[path]
	if !known {
		return "", fmt.Errorf("unsupported field %s", path)
	}
	return value, nil
}

// resource returns a limit or a request of a container.
func resource(container *corev1.Container, selector *corev1.ResourceFieldSelector) (string, error) {
	quantities := map[string]corev1.ResourceList{"limits": container.Resources.Limits, "requests": container.Resources.Requests}
	for kind, list := range quantities {
		for name, quantity := range list {
			if selector.Resource == kind+"."+string(name) && selector.Divisor.IsZero() {
				return fmt.Sprint(quantity.Value()), nil
			}
		}
	}
	return "", fmt.Errorf("unsupported resource %s divided by %s", selector.Resource, &selector.Divisor)
}
