// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Discovery is the discovery of a cluster that serves these resources, each group in one version.
type Discovery []*metav1.APIResourceList

// ServerGroupsAndResourcesWithContext returns the resources and their groups.
func (d Discovery) ServerGroupsAndResourcesWithContext(context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	var groups []*metav1.APIGroup
	for _, list := range d {
		parsed, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, nil, err
		}
		version := metav1.GroupVersionForDiscovery{GroupVersion: list.GroupVersion, Version: parsed.Version}
		groups = append(groups, &metav1.APIGroup{
			Name: parsed.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
		})
	}
	return groups, d, nil
}
