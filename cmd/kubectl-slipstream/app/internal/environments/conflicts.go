// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// decision is what a user decides about a field.
type decision string

const (
	undecided decision = ""
	keep      decision = "keep"
	take      decision = "take"
)

// everything names all fields that are not named.
const everything = "all"

// valueWidth is how much of a value is shown.
const valueWidth = 70

// conflict is a field that was changed in the environment and in the catalog.
type conflict struct {
	workload v1alpha1.WorkloadReference
	field    string
	managers []string
	// here and offered are the values, as JSON. nil means that there is none.
	here, offered *string
	// shown is false if the values may not be shown, or are not known.
	shown   bool
	decided decision
}

// isPatched reports whether patches of the environment set the field. It can only be kept.
func (c *conflict) isPatched() bool { return slices.Contains(c.managers, v1alpha1.FieldManager) }

// ref returns the workload as users name it.
func (c *conflict) ref() string { return string(c.workload.Kind) + "/" + c.workload.Name }

// conflictsOf returns the conflicts of an environment. diff has the values of both sides; it is nil if it cannot be read.
func conflictsOf(environment *v1alpha1.Environment, diff *v1alpha1.EnvironmentDiff) []*conflict {
	var all []*conflict
	for _, workload := range environment.Status.Conflicts {
		for _, field := range workload.Fields {
			c := &conflict{
				workload: v1alpha1.WorkloadReference{Kind: workload.Kind, Name: workload.Name}, field: field.Field, managers: field.Managers,
			}
			c.findValues(diff)
			all = append(all, c)
		}
	}
	return all
}

// findValues sets the values of both sides.
func (c *conflict) findValues(diff *v1alpha1.EnvironmentDiff) {
	if diff == nil {
		return
	}
	for i := range diff.Status.Changes {
		change := &diff.Status.Changes[i]
		if change.Kind != string(c.workload.Kind) || change.Name != c.workload.Name {
			continue
		}
		for _, field := range change.Fields {
			if field.Field == c.field {
				c.here, c.offered, c.shown = field.Before, field.After, !field.Hidden
			}
		}
	}
}

// print prints both sides of the conflict.
func (c *conflict) print(out io.Writer) error {
	owners := strings.Join(c.managers, ", ")
	if c.isPatched() {
		owners = "spec.patches of the environment; it can only be kept"
	}
	lines := []string{c.ref() + " " + c.field, "  here     " + c.value(c.here), "  catalog  " + c.value(c.offered)}
	if owners != "" {
		lines[1] += "  (" + owners + ")"
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(out, printable.Line(line)); err != nil {
			return err
		}
	}
	return nil
}

// value returns a value of one side.
func (c *conflict) value(json *string) string {
	switch {
	case !c.shown:
		return "(not shown)"
	case json == nil:
		return "(none)"
	}
	return cli.Shorten(*json, valueWidth)
}

// decide decides about the fields that arguments of --keep or --take name.
func decide(conflicts []*conflict, what decision, arguments []string) error {
	for _, argument := range arguments {
		if argument == everything {
			continue
		}
		found := false
		for _, c := range conflicts {
			if !c.isNamed(argument) {
				continue
			}
			if found = true; c.decided != undecided && c.decided != what {
				return fmt.Errorf("%s %s is both kept and taken", c.ref(), c.field)
			}
			if what == take && c.isPatched() && argument != c.ref() {
				return fmt.Errorf("--take=%s: spec.patches of the environment set the field: remove it there", argument)
			}
			c.set(what)
		}
		if !found {
			return fmt.Errorf("--%s=%s is none of the conflicts: name a field such as %s, or a workload such as %s", what, argument,
				conflicts[0].field, conflicts[0].ref())
		}
	}
	return nil
}

// decideRest decides about the fields that are undecided.
func decideRest(conflicts []*conflict, what decision) {
	for _, c := range conflicts {
		if c.decided == undecided {
			c.set(what)
		}
	}
}

// set decides about a field. One that patches set is kept.
func (c *conflict) set(what decision) {
	if c.decided = what; c.isPatched() {
		c.decided = keep
	}
}

// isNamed reports whether an argument names the field, its workload, or both.
func (c *conflict) isNamed(argument string) bool {
	if strings.HasPrefix(argument, "/") {
		return argument == c.field
	}
	word, rest, _ := strings.Cut(argument, "/")
	name, field, hasField := strings.Cut(rest, "/")
	workload, err := cli.ParseWorkload(word + "/" + name)
	return err == nil && workload == c.workload && (!hasField || "/"+field == c.field)
}

// resolution returns the request for the decisions.
func resolution(conflicts []*conflict) v1alpha1.ConflictResolutionSpec {
	return v1alpha1.ConflictResolutionSpec{Keep: choices(conflicts, keep), Take: choices(conflicts, take)}
}

// choices returns the fields that were decided in one way, by workload.
func choices(conflicts []*conflict, what decision) (out []v1alpha1.ConflictChoice) {
	for _, c := range conflicts {
		if c.decided != what {
			continue
		}
		last := len(out) - 1
		if last < 0 || out[last].Kind != c.workload.Kind || out[last].Name != c.workload.Name {
			out = append(out, v1alpha1.ConflictChoice{Kind: c.workload.Kind, Name: c.workload.Name})
			last++
		}
		out[last].Fields = append(out[last].Fields, c.field)
	}
	return out
}

// undecidedOf returns how many fields are undecided.
func undecidedOf(conflicts []*conflict) (count int) {
	for _, c := range conflicts {
		if c.decided == undecided {
			count++
		}
	}
	return count
}
