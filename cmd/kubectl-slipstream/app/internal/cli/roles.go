// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import "slices"

// role is a ClusterRole of the chart for users, with the rules that the roles before it lack.
type role struct {
	name  string
	rules []rule
}

// rule permits verbs on resources of configbutler.ai.
type rule struct {
	verbs, resources []string
}

var (
	readVerbs  = []string{"get", "list", "watch"}
	writeVerbs = []string{"create", "update", "patch", "delete", "deletecollection"}
)

// roles are the roles of the chart, the one with the fewest permissions first.
var roles = []role{
	{"slipstream-view", []rule{
		{readVerbs, []string{
			"gitrepoconfigs", "gitdestinations", "gitdestinationstatuses", "changes", "watchrules", "clusterwatchrules", "appcatalogs",
			"catalogworkloads", "environments", "environmentdependencies", "syncstatuses", "syncpipelines",
			"notificationsinks", "syncpolicies",
		}},
		{[]string{"get"}, []string{"environments/diff", "changes/diff", "gitdestinations/objects"}},
	}},
	{"slipstream-edit", []rule{
		{writeVerbs, []string{"gitdestinations", "watchrules", "appcatalogs", "environments"}},
		{[]string{"create"}, []string{
			"gitdestinations/sync", "appcatalogs/sync", "appcatalogs/rollback", "environments/sync", "environments/dismiss",
			"environments/undismiss", "environments/resolve", "environments/rollback", "environments/rediscover", "syncstatuses/dismiss",
			"syncstatuses/retry", "syncpipelines/sync", "notificationsinks/test",
		}},
	}},
	{"slipstream-admin", []rule{
		{writeVerbs, []string{"gitrepoconfigs", "clusterwatchrules", "syncpipelines", "notificationsinks", "syncpolicies"}},
		{[]string{"delete", "deletecollection"}, []string{
			"gitdestinationstatuses", "catalogworkloads", "environmentdependencies", "syncstatuses",
		}},
		{[]string{"get"}, []string{"environments/secretdiff"}},
	}},
}

// RoleWith returns the ClusterRole with the fewest permissions that permits a verb on a resource of configbutler.ai, such as
// environments/sync. It is empty if none does.
func RoleWith(verb, resource string) string {
	for _, r := range roles {
		for _, rule := range r.rules {
			if slices.Contains(rule.verbs, verb) && slices.Contains(rule.resources, resource) {
				return r.name
			}
		}
	}
	return ""
}
