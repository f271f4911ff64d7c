// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "strings"

// CatalogWorkloadName is the name of the CatalogWorkload that holds a workload of a catalog. Two of them never have the
// same, because the names of catalogs have no dots.
func CatalogWorkloadName(catalog string, kind WorkloadKind, name string) string {
	return catalog + "." + strings.ToLower(string(kind)) + "." + name
}
