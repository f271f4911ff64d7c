// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ignorerules compiles the ignore rules of API objects.
package ignorerules

import (
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/ignore"
)

// Compile compiles the field ignore of a spec or a response. It fails on rules that validation rejects.
func Compile(from []v1alpha1.IgnoreRule) (ignore.Rules, error) {
	rules := make([]ignore.Rule, len(from))
	for i, rule := range from {
		rules[i] = ignore.Rule{
			Group: rule.Target.Group, Kind: rule.Target.Kind, Name: rule.Target.Name, Fields: rule.Fields, Managers: rule.Managers,
		}
	}
	return ignore.Compile(rules)
}
