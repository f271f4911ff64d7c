// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// CatalogWorkloadName is the name of the CatalogWorkload that holds a workload of a catalog. Two of them never have the
// same, because the names of catalogs have no dots.
func CatalogWorkloadName(catalog string, kind WorkloadKind, name string) string {
	return catalog + "." + strings.ToLower(string(kind)) + "." + name
}

// WorkloadResources are where the API server has the kinds of workloads.
func WorkloadResources() map[WorkloadKind]schema.GroupResource {
	return map[WorkloadKind]schema.GroupResource{
		WorkloadDeployment:  {Group: "apps", Resource: "deployments"},
		WorkloadStatefulSet: {Group: "apps", Resource: "statefulsets"},
		WorkloadDaemonSet:   {Group: "apps", Resource: "daemonsets"},
		WorkloadReplicaSet:  {Group: "apps", Resource: "replicasets"},
		WorkloadJob:         {Group: "batch", Resource: "jobs"},
		WorkloadCronJob:     {Group: "batch", Resource: "cronjobs"},
	}
}
