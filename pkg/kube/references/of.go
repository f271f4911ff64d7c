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

// Of returns what objects refer to, each target once, sorted by type and name. Objects of kinds that refer to nothing here
// add nothing. It fails on an object that is not of the shape of its type.
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

// finder collects what one object refers to.
type finder struct {
	kind, namespace, name string
	found                 []Reference
}

// use is how a target is referred to.
type use struct {
	keys     []string
	optional *bool
}

// add takes down a reference; one without a name is none.
func (f *finder) add(t Type, name string, at place, u use) {
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

// workload is what workloads have in common.
type workload struct {
	Spec struct {
		Template corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
}

// podTemplate returns the template of a workload's pods, and where it is; nil if the object is no workload.
func podTemplate(object *unstructured.Unstructured) (*corev1.PodTemplateSpec, place, error) {
	switch object.GroupVersionKind().GroupKind().String() {
	case "DaemonSet.apps", "Deployment.apps", "ReplicaSet.apps", "StatefulSet.apps", "Job.batch":
		var w workload
		err := read(object, &w)
		return &w.Spec.Template, place{}.field("spec", "template"), err
	case "CronJob.batch":
		var cron batchv1.CronJob
		err := read(object, &cron)
		return &cron.Spec.JobTemplate.Spec.Template, place{}.field("spec", "jobTemplate", "spec", "template"), err
	}
	return nil, nil, nil
}

// read converts an object. The converter's errors quote values, which may be secret.
func read(object *unstructured.Unstructured, into any) error {
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into) != nil {
		return fmt.Errorf("read the references of %s %q: it is not of the shape of its type", object.GetKind(), object.GetName())
	}
	return nil
}
