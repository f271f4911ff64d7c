// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

func TestEnvironmentDependencyName(t *testing.T) {
	if got := v1alpha1.EnvironmentDependencyName("alice", v1alpha1.DependencyConfigMap, "app.config"); got != "alice.configmap.app.config" {
		t.Errorf("got %s", got)
	}
	seen := map[string]bool{}
	for _, end := range []string{"", "b", "c", "bc", "-b", ".b"} {
		long := strings.Repeat("a", 230) + strings.Repeat(".a", 5) + end
		name := v1alpha1.EnvironmentDependencyName("alice", v1alpha1.DependencyServiceAccount, long)
		if problems := utilvalidation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
		if !strings.HasPrefix(name, "alice.serviceaccount.aaa") {
			t.Errorf("%s does not begin with what it is about", name)
		}
		if seen[name] {
			t.Errorf("%s comes twice", name)
		}
		seen[name] = true
	}
}
