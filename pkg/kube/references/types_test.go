// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package references_test

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/kube/references"
)

// naming are the last parts of fields that may name an object.
var naming = regexp.MustCompile(`(?i)name|secret|configmap|claim|account|service|endpoints|reference|ref$`)

// others are fields that name nothing that a workload refers to here, by patterns of their paths, and what they name instead.
var others = map[string]string{
	`(containers|initContainers|ephemeralContainers|volumes|resourceClaims|` +
		`schedulingGates|evictionResponders)\[\]\.name`: "a part of the pod",
	`.*ontainers\[\]\.(env|ports|volumeMounts|volumeDevices|resources\.claims)\[\]\.name`: "a part of the container, or of the pod",
	`.*ontainers\[\]\.env\[\]\.valueFrom\.(resourceFieldRef\.containerName|` +
		`fileKeyRef\.volumeName)`: "a part of the pod",
	`.*ontainers\[\]\.(lifecycle\.\w+|\w+Probe)\.httpGet\.httpHeaders\[\]\.name`: "a header",
	`.*ontainers\[\]\.\w+Probe\.grpc\.service`:                                   "a service within the container",
	`ephemeralContainers\[\]\.targetContainerName`:                               "a part of the pod",
	`.*downwardAPI\.items\[\]\.resourceFieldRef\.containerName`:                  "a part of the pod",
	`resources\.claims\[\]\.name`:                                                "a part of the pod",
	`(nodeName|hostname|hostnameOverride|hostAliases\[\]\.hostnames\[\]|` +
		`dnsConfig\.nameservers\[\]|dnsConfig\.options\[\]\.name)`: "a host",
	`(schedulerName|priorityClassName|runtimeClassName|os\.name|` +
		`.*ontainers\[\]\.resizePolicy\[\]\.resourceName)`: "something of the cluster",
	`securityContext\.sysctls\[\]\.name`:                                        "a setting of the kernel",
	`.*securityContext\.windowsOptions\.(gmsaCredentialSpecName|runAsUserName)`: "something of the cluster or of Windows",
	`volumes\[\]\.(azureDisk\.diskName|azureFile\.shareName|flocker\.datasetName|` +
		`gcePersistentDisk\.pdName|scaleIO\.volumeName|storageos\.volumeName|` +
		`storageos\.volumeNamespace)`: "something in the storage",
	`volumes\[\]\.(iscsi\.initiatorName|vsphereVolume\.storagePolicyName|image\.reference)`: "something in the storage",
	`volumes\[\]\.cephfs\.secretFile`:   "a file of the node",
	`volumes\[\]\.glusterfs\.endpoints`: "an Endpoints object: the storage that a cluster knows",
	`volumes\[\]\.projected\.sources\[\]\.(clusterTrustBundle\.(name|signerName)|` +
		`podCertificate\.signerName)`: "something of the cluster",
	`volumes\[\]\.ephemeral\.volumeClaimTemplate\.spec\.(storageClassName|` +
		`volumeAttributesClassName|volumeName)`: "something of the cluster",
	`volumes\[\]\.ephemeral\.volumeClaimTemplate\.metadata\..*`: "the claim that is made",
	`resourceClaims\[\]\.(resourceClaimName|resourceClaimTemplateName)|` +
		`schedulingGroup\.podGroupName`: "devices and scheduling: no type that is copied",
	`.*fieldRef\..*|.*opologySpreadConstraints.*|affinity\..*`: "the pod itself, or labels",
}

// TestEveryFieldThatMayNameAnObjectIsKnown fills in every field of a pod with its own path, and sees which are found. It fails
// when a new version of Kubernetes adds a field that is in neither list.
func TestEveryFieldThatMayNameAnObjectIsKnown(t *testing.T) {
	fields := sets.New[string]()
	deployment := appsv1.Deployment{}
	fill(reflect.ValueOf(&deployment.Spec.Template.Spec).Elem(), "", fields)
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&deployment)
	if err != nil {
		t.Fatal(err)
	}
	from := &unstructured.Unstructured{Object: object}
	from.SetAPIVersion("apps/v1")
	from.SetKind("Deployment")
	found, err := references.Of(from)
	if err != nil {
		t.Fatal(err)
	}
	visited := sets.New[string]()
	for _, r := range found {
		visited.Insert(r.Name)
		checkType(t, r)
	}
	if unknown := visited.Difference(fields); unknown.Len() > 0 {
		t.Errorf("no fields: %v", unknown.UnsortedList())
	}
	used := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(fields)) {
		if last := path[strings.LastIndex(path, ".")+1:]; !naming.MatchString(last) || visited.Has(path) {
			continue
		}
		if pattern := otherThan(path); pattern != "" {
			used[pattern] = true
			continue
		}
		t.Errorf("%s may name an object, and is neither read nor known to name another thing", path)
	}
	for pattern := range others {
		if !used[pattern] {
			t.Errorf("no field is %s", pattern)
		}
	}
}

func otherThan(path string) string {
	for pattern := range others {
		if regexp.MustCompile("^(" + pattern + ")$").MatchString(path) {
			return pattern
		}
	}
	return ""
}

// checkType expects the type that follows from the path of a field.
func checkType(t *testing.T, r references.Reference) {
	t.Helper()
	want := references.Secret
	switch lower := strings.ToLower(r.Name); {
	case strings.Contains(lower, "configmap"):
		want = references.ConfigMap
	case strings.Contains(lower, "serviceaccount"):
		want = references.ServiceAccount
	case strings.Contains(lower, "claim"):
		want = references.PersistentVolumeClaim
	case lower == "subdomain":
		want = references.Service
	}
	if r.Type != want {
		t.Errorf("%s is a %s, want a %s", r.Name, r.Type, want)
	}
}

// fill gives every text below a value its own path, lists one item, and takes the paths down.
func fill(value reflect.Value, path string, paths sets.Set[string]) {
	switch value.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem(), path, paths)
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		fill(value.Index(0), path+"[]", paths)
	case reflect.Struct:
		fillStruct(value, path, paths)
	case reflect.String:
		paths.Insert(path)
		value.SetString(path)
	}
}

func fillStruct(value reflect.Value, path string, paths sets.Set[string]) {
	switch value.Interface().(type) {
	case corev1.TypedLocalObjectReference:
		value.Set(reflect.ValueOf(corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: path + ".name"}))
		paths.Insert(path + ".name")
		return
	case corev1.TypedObjectReference:
		value.Set(reflect.ValueOf(corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: path + ".name"}))
		paths.Insert(path + ".name")
		return
	}
	for i := range value.NumField() {
		tag, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
		if !value.Type().Field(i).IsExported() {
			continue
		}
		at := path
		if tag != "" {
			at = strings.TrimPrefix(path+"."+tag, ".")
		}
		fill(value.Field(i), at, paths)
	}
}
