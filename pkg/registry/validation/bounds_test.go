// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

// What is looked for in each object, and done for each Secret, has a bound.
func TestBoundsOfGitDestination(t *testing.T) {
	rule := configbutler.IgnoreRule{Fields: []string{"/spec/replicas"}}
	names := func(fields, managers int) configbutler.IgnoreRule {
		return configbutler.IgnoreRule{Fields: slices.Repeat([]string{"/spec/a"}, fields), Managers: slices.Repeat([]string{"a"}, managers)}
	}
	type dest = *configbutler.GitDestination
	checkChanges(t, destination, validation.ValidateGitDestination, validation.ValidateGitDestinationUpdate, []change[dest]{
		{name: "as many rules as there may be", do: func(d dest) { d.Spec.Ignore = slices.Repeat([]configbutler.IgnoreRule{rule}, 100) }},
		{
			name: "more rules", do: func(d dest) { d.Spec.Ignore = slices.Repeat([]configbutler.IgnoreRule{rule}, 101) },
			path: "spec.ignore", says: "101: must have at most 100 items",
		},
		{name: "as many names as there may be", do: func(d dest) { d.Spec.Ignore = []configbutler.IgnoreRule{names(300, 200), names(300, 200)} }},
		{
			name: "more names", do: func(d dest) { d.Spec.Ignore = []configbutler.IgnoreRule{names(300, 200), names(300, 201)} },
			path: "spec.ignore", says: "name 1001 fields and managers in all, and may name at most 1000",
		},
		{
			name: "more recipients than there may be",
			do:   func(d dest) { d.Spec.Encryption.AgeRecipients = slices.Repeat([]string{recipient}, 101) },
			path: "spec.encryption.ageRecipients", says: "101: must have at most 100 items",
		},
	})
}

// A list that is as long as a request can make it is checked as others are: each of its values is compared with the one before it, not
// with all of them, which took minutes.
func TestListsWithoutEnd(t *testing.T) {
	const length = 300_000
	d := destination()
	rule := &configbutler.WatchRule{
		ObjectMeta: meta("rule"),
		Spec: configbutler.WatchRuleSpec{
			DestinationRef: configbutler.ObjectReference{Name: d.Name},
			Rules:          []configbutler.ResourceRule{{Name: "all", Resources: []string{"pods"}}},
		},
	}
	for i := range length {
		rule.Spec.Rules[0].Resources = append(rule.Spec.Rules[0].Resources, fmt.Sprintf("r%d", i))
	}
	rule.Spec.Rules[0].Resources = append(rule.Spec.Rules[0].Resources, "pods")
	errs := validation.ValidateWatchRule(rule)
	if want := fmt.Sprintf("resources[%d]", length+1); len(errs) != 1 || !strings.HasSuffix(errs[0].Field, want) {
		t.Errorf("%d errors, want one about %s: %.1000v", len(errs), want, errs)
	}
}
