// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// workloadAliases are the abbreviations that kubectl has for kinds of workloads.
var workloadAliases = map[string]v1alpha1.WorkloadKind{
	"deploy": v1alpha1.WorkloadDeployment, "sts": v1alpha1.WorkloadStatefulSet, "ds": v1alpha1.WorkloadDaemonSet,
	"rs": v1alpha1.WorkloadReplicaSet, "cj": v1alpha1.WorkloadCronJob,
}

// ParseWorkload parses KIND/NAME, in which the kind is written as for kubectl: in the singular or the plural, abbreviated, with or without the
// API group, and in any case. The error names the kinds.
func ParseWorkload(argument string) (v1alpha1.WorkloadReference, error) {
	word, name, _ := strings.Cut(strings.TrimSpace(argument), "/")
	kind, known := workloadKind(strings.ToLower(word))
	if !known || name == "" {
		var kinds []string
		for kind := range v1alpha1.WorkloadResources() {
			kinds = append(kinds, strings.ToLower(string(kind)))
		}
		slices.Sort(kinds)
		return v1alpha1.WorkloadReference{}, fmt.Errorf("%q is no workload: write KIND/NAME with %s", argument, orList(kinds))
	}
	return v1alpha1.WorkloadReference{Kind: kind, Name: name}, nil
}

// workloadKind returns the kind of workloads that a word in lower case names.
func workloadKind(word string) (v1alpha1.WorkloadKind, bool) {
	plain, group, _ := strings.Cut(word, ".")
	for kind, resource := range v1alpha1.WorkloadResources() {
		isNamed := plain == resource.Resource || plain == strings.ToLower(string(kind)) || workloadAliases[plain] == kind
		if isNamed && (group == "" || group == resource.Group) {
			return kind, true
		}
	}
	return "", false
}
