// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// Of returns the targets that objects refer to by name, without duplicates, sorted by type and name. Objects of other
// kinds add nothing. It fails on an object that does not fit its type.
func Of(objects ...*unstructured.Unstructured) ([]Reference, error) {
	var found [][]Reference
	for _, object := range objects {
		f := finder{kind: object.GetKind(), namespace: object.GetNamespace(), name: object.GetName()}
		if err := f.find(object); err != nil {
			return nil, err
		}
		found = append(found, f.found)
	}
	return Merge(found...), nil
}

// finder collects the references of one object.
type finder struct {
	kind, namespace, name string
	found                 []Reference
}

// use describes how a target is used.
type use struct {
	keys     []string
	optional *bool
}

// add adds a reference. One without a name is ignored.
func (f *finder) add(t Type, name string, at path, u use) {
	if name == "" {
		return
	}
	slices.Sort(u.keys)
	f.found = append(f.found, Reference{Target{t, name}, []Referrer{{
		Kind: f.kind, Name: f.name, Path: fieldpath.Path(at), Keys: u.keys, Optional: u.optional != nil && *u.optional,
	}}})
}

func (f *finder) find(object *unstructured.Unstructured) error {
	switch object.GroupVersionKind().GroupKind().String() {
	case "Gateway." + gatewayv1.GroupName:
		var gateway gatewayv1.Gateway
		if err := read(object, &gateway); err != nil {
			return err
		}
		f.gateway(&gateway.Spec)
	case "GRPCRoute." + gatewayv1.GroupName:
		var route gatewayv1.GRPCRoute
		if err := read(object, &route); err != nil {
			return err
		}
		f.grpcRoute(&route.Spec)
	case "HTTPRoute." + gatewayv1.GroupName:
		var route gatewayv1.HTTPRoute
		if err := read(object, &route); err != nil {
			return err
		}
		f.httpRoute(&route.Spec)
	case "Ingress.networking.k8s.io":
		var ingress networkingv1.Ingress
		if err := read(object, &ingress); err != nil {
			return err
		}
		f.ingress(&ingress.Spec)
	case "ServiceAccount":
		var account corev1.ServiceAccount
		if err := read(object, &account); err != nil {
			return err
		}
		f.account(&account)
	case "StatefulSet.apps":
		var set appsv1.StatefulSet
		if err := read(object, &set); err != nil {
			return err
		}
		f.statefulSet(&set.Spec)
	}
	template, at, err := podTemplate(object)
	if template == nil || err != nil {
		return err
	}
	f.pod(&template.Spec, at.field("spec"))
	return nil
}

// workload is the common part of workloads.
type workload struct {
	Spec struct {
		Template corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
}

// templateAt returns the path of the pod template of a workload, nil if the object is no workload.
func templateAt(object *unstructured.Unstructured) path {
	switch object.GroupVersionKind().GroupKind().String() {
	case "DaemonSet.apps", "Deployment.apps", "ReplicaSet.apps", "StatefulSet.apps", "Job.batch":
		return path{}.field("spec", "template")
	case "CronJob.batch":
		return path{}.field("spec", "jobTemplate", "spec", "template")
	}
	return nil
}

// podTemplate returns the pod template of a workload and its path, nil if the object is no workload.
func podTemplate(object *unstructured.Unstructured) (*corev1.PodTemplateSpec, path, error) {
	at := templateAt(object)
	switch {
	case at == nil:
		return nil, nil, nil
	case object.GetKind() == "CronJob":
		var cron batchv1.CronJob
		err := read(object, &cron)
		return &cron.Spec.JobTemplate.Spec.Template, at, err
	}
	var w workload
	err := read(object, &w)
	return &w.Spec.Template, at, err
}

// read converts an object. It does not wrap the converter's errors, which quote values that may be secret.
func read(object *unstructured.Unstructured, into any) error {
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into) != nil {
		return fmt.Errorf("read the references of %s %q: it is not of the shape of its type", object.GetKind(), object.GetName())
	}
	return nil
}
