// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// onEtcd are the values of an installation on etcd, with defaults for everything else.
const onEtcd = `{storage: {backend: etcd3, etcd: {servers: ["https://etcd:2379"]}}, replicas: 3}`

// The Pod meets the restricted Pod Security Standard, and more.
func TestPodIsRestricted(t *testing.T) {
	pod := find[*appsv1.Deployment](t, objects(t, "{}"), "slipstream").Spec.Template.Spec
	if want := (&corev1.PodSecurityContext{
		RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532), RunAsGroup: ptr.To[int64](65532),
		FSGroup: ptr.To[int64](65532), FSGroupChangePolicy: ptr.To(corev1.FSGroupChangeOnRootMismatch),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}); !reflect.DeepEqual(pod.SecurityContext, want) {
		t.Errorf("security context of the Pod = %v", pod.SecurityContext)
	}
	if want := (&corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}); !reflect.DeepEqual(pod.Containers[0].SecurityContext, want) {
		t.Errorf("security context of the container = %v", pod.Containers[0].SecurityContext)
	}
	if pod.HostNetwork || pod.HostPID || pod.HostIPC {
		t.Error("Pod uses a namespace of the host")
	}
}

func TestDeploymentStrategy(t *testing.T) {
	for name, test := range map[string]struct {
		values string
		want   appsv1.DeploymentStrategy
		grace  int64
	}{
		"bbolt": {"{}", appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}, 60},
		"etcd":  {onEtcd, rolling(0, 1), 65},
		"etcd, host network": {
			`{storage: {backend: etcd3, etcd: {servers: ["https://etcd:2379"]}}, hostNetwork: true, securePort: 10260, shutdownDelaySeconds: 20}`,
			rolling(1, 0), 80,
		},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := find[*appsv1.Deployment](t, objects(t, test.values), "slipstream").Spec
			if !reflect.DeepEqual(deployment.Strategy, test.want) {
				t.Errorf("strategy = %v, want %v", deployment.Strategy, test.want)
			}
			if got := *deployment.Template.Spec.TerminationGracePeriodSeconds; got != test.grace {
				t.Errorf("termination grace period = %d s, want %d", got, test.grace)
			}
		})
	}
}

func rolling(unavailable, surge int32) appsv1.DeploymentStrategy {
	return appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
		MaxUnavailable: ptr.To(intstr.FromInt32(unavailable)), MaxSurge: ptr.To(intstr.FromInt32(surge)),
	}}
}

// A node can be drained with any number of replicas, and only one of several replicas is unavailable at once.
func TestDisruptionBudget(t *testing.T) {
	if budgets := among[*policyv1.PodDisruptionBudget](t, objects(t, "{}"), "slipstream"); len(budgets) > 0 {
		t.Errorf("disruption budget of one replica = %v", budgets[0].Spec)
	}
	budget := find[*policyv1.PodDisruptionBudget](t, objects(t, onEtcd), "slipstream").Spec
	if budget.MinAvailable != nil || budget.MaxUnavailable.IntValue() != 1 {
		t.Errorf("disruption budget of three replicas = %v", budget)
	}
}

// All selectors select the Pods of the server, and no others.
func TestSelectors(t *testing.T) {
	all := objects(t, onEtcd)
	deployment := find[*appsv1.Deployment](t, all, "slipstream").Spec
	pod := labels.Set(deployment.Template.Labels)
	selectors := []labels.Selector{
		labels.SelectorFromSet(find[*corev1.Service](t, all, "slipstream").Spec.Selector),
		selector(t, deployment.Selector),
		selector(t, find[*policyv1.PodDisruptionBudget](t, all, "slipstream").Spec.Selector),
	}
	for _, spread := range deployment.Template.Spec.TopologySpreadConstraints {
		selectors = append(selectors, selector(t, spread.LabelSelector))
	}
	if len(selectors) != 5 {
		t.Fatalf("%d selectors, want 5", len(selectors))
	}
	for _, each := range selectors {
		if !each.Matches(pod) || each.Matches(labels.Set{"app.kubernetes.io/name": "slipstream"}) {
			t.Errorf("selector %v must select Pods with %v only", each, pod)
		}
	}
}

func selector(t *testing.T, from *metav1.LabelSelector) labels.Selector {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(from)
	if err != nil {
		t.Fatal(err)
	}
	return selector
}

// The data is on the volume, which is kept when the release is uninstalled.
func TestVolume(t *testing.T) {
	all := objects(t, "{}")
	if claim := find[*corev1.PersistentVolumeClaim](t, all, "slipstream"); claim.Annotations["helm.sh/resource-policy"] != "keep" {
		t.Errorf("annotations of the claim = %v", claim.Annotations)
	}
	pod := find[*appsv1.Deployment](t, all, "slipstream").Spec.Template.Spec
	if want := []corev1.VolumeMount{{Name: "data", MountPath: "/var/lib/slipstream"}}; !reflect.DeepEqual(
		pod.Containers[0].VolumeMounts, want) {
		t.Errorf("volume mounts = %v", pod.Containers[0].VolumeMounts)
	}
	if !slices.Contains(pod.Containers[0].Args, "--data-dir=/var/lib/slipstream") {
		t.Errorf("arguments of the server = %v", pod.Containers[0].Args)
	}
	on := find[*appsv1.Deployment](t, objects(t, onEtcd), "slipstream").Spec.Template.Spec
	if len(on.Volumes) != 1 || on.Volumes[0].EmptyDir == nil || on.Containers[0].VolumeMounts[0].Name != on.Volumes[0].Name {
		t.Errorf("volumes of a Pod on etcd = %v", on.Volumes)
	}
}

// The probes exclude checks that a restart does not fix, and use the target port of the Service.
func TestProbes(t *testing.T) {
	for values, live := range map[string]string{"{}": "/livez", onEtcd: "/livez?exclude=etcd"} {
		container := find[*appsv1.Deployment](t, objects(t, values), "slipstream").Spec.Template.Spec.Containers[0]
		for probe, want := range map[*corev1.Probe]string{
			container.StartupProbe: live, container.LivenessProbe: live,
			container.ReadinessProbe: "/readyz?exclude=store-records&exclude=store-space",
		} {
			if got := probe.HTTPGet; got.Path != want || got.Scheme != corev1.URISchemeHTTPS || got.Port != intstr.FromString("https") {
				t.Errorf("values %s: probe = %v, want %s", values, got, want)
			}
		}
		if want := []corev1.ContainerPort{{Name: "https", ContainerPort: 10250}}; !reflect.DeepEqual(container.Ports, want) {
			t.Errorf("ports of the container = %v", container.Ports)
		}
	}
}

// The APIService refers to the Service and has no CA bundle, which the server writes.
func TestAPIService(t *testing.T) {
	got := other(t, objects(t, "{service: {port: 8443}}"), "APIService", "v1alpha1.configbutler.ai")
	if want := map[string]any{
		"group": "configbutler.ai", "version": "v1alpha1", "groupPriorityMinimum": 1000.0, "versionPriority": 100.0,
		"service": map[string]any{"name": "slipstream", "namespace": namespace, "port": 8443.0},
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("APIService spec = %v, want %v", got, want)
	}
}
