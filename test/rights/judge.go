// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/test/devcluster/rights"
)

// serverRole is the prefix of the names of the server's roles.
const serverRole = "slipstream-server"

// right is one permission of a role: one verb on one resource.
type right rights.Use

// verdict is the result for a permission.
type verdict struct {
	right
	// programs are the tests in which a request would have been denied without it.
	programs []string
	// exception is the reason for it if no test needs it.
	exception string
}

// rightsOf returns the permissions of the server's roles in a manifest.
func rightsOf(manifest string) (given []right, err error) {
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			return nil, err
		}
		if !strings.HasSuffix(role.Kind, "Role") || !strings.HasPrefix(role.Name, serverRole) {
			continue
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						given = append(given, right{Role: role.Name, Group: group, Resource: resource, Verb: verb})
					}
				}
			}
		}
	}
	return given, nil
}

// judge returns one verdict for each permission.
func judge(given []right, records []rights.Record) []verdict {
	slices.SortFunc(given, compare)
	var verdicts []verdict
	for _, each := range slices.Compact(given) {
		v := verdict{right: each, exception: exceptionOf(each)}
		for _, record := range records {
			if slices.ContainsFunc(record.Uses, each.allows) {
				v.programs = append(v.programs, record.Program)
			}
		}
		slices.Sort(v.programs)
		v.programs = slices.Compact(v.programs)
		verdicts = append(verdicts, v)
	}
	return verdicts
}

func compare(a, b right) int {
	return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb))
}

func (r right) allows(use rights.Use) bool {
	return r.Role == use.Role && rights.Allows([]string{r.Group}, use.Group) && rights.Allows([]string{r.Resource}, use.Resource) &&
		r.Verb == use.Verb
}

func (r right) String() string {
	return fmt.Sprintf("%s: %s %s in group %q", r.Role, r.Verb, r.Resource, r.Group)
}

// denied returns the denied requests of clusters in which none may be denied.
func denied(records []rights.Record) (faults []string) {
	for _, record := range records {
		if record.Denials != "" {
			continue
		}
		for _, request := range record.Denied {
			faults = append(faults, fmt.Sprintf("%s: denied request of the server: %s", record.Program, request))
		}
	}
	slices.Sort(faults)
	return slices.Compact(faults)
}

// unused returns the permissions that no request has needed, without the exceptions.
func unused(verdicts []verdict) (faults []string) {
	for _, v := range verdicts {
		if len(v.programs) == 0 && v.exception == "" {
			faults = append(faults, v.String()+": not needed by any request")
		}
	}
	return faults
}

// printTable writes a line for each verdict.
func printTable(out io.Writer, verdicts []verdict) error {
	var lines strings.Builder
	lines.WriteString("ROLE\tGROUP\tRESOURCE\tVERB\tNEEDED BY\n")
	for _, v := range verdicts {
		by := cmp.Or(strings.Join(v.programs, " "), v.exception, "no request")
		lines.WriteString(strings.Join([]string{v.Role, v.Group, v.Resource, v.Verb, by}, "\t") + "\n")
	}
	return align(out, lines.String())
}

// printDenied writes a line for each denied request of clusters in which some may be denied, with the reason.
func printDenied(out io.Writer, records []rights.Record) error {
	var lines []string
	for _, record := range records {
		if record.Denials == "" {
			continue
		}
		for _, request := range record.Denied {
			lines = append(lines, strings.Join([]string{record.Program, request, record.Denials}, "\t")+"\n")
		}
	}
	if len(lines) == 0 {
		return nil
	}
	slices.Sort(lines)
	return align(out, "\nPROGRAM\tDENIED\tREASON\n"+strings.Join(slices.Compact(lines), ""))
}

// align writes lines whose cells are separated by tabs.
func align(out io.Writer, lines string) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(table, lines); err != nil {
		return err
	}
	return table.Flush()
}
