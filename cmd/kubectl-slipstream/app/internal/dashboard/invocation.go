// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// maxItems is the number of items of an option.
const maxItems = 200

// options are what the user has chosen for an action.
type options struct {
	Action    string   `json:"action,omitempty"`
	Force     bool     `json:"force,omitempty"`
	Workloads []string `json:"workloads,omitempty"`
	Choices   []choice `json:"choices,omitempty"`
	Revision  int64    `json:"revision,omitempty"`
	For       string   `json:"for,omitempty"`
	Full      bool     `json:"full,omitempty"`
	Scope     string   `json:"scope,omitempty"`
	Object    string   `json:"object,omitempty"`
}

// choice is a decision about a conflict. Field is one as status.conflicts names it, a workload as KIND/NAME, both, or all.
type choice struct {
	Field string `json:"field"`
	Take  string `json:"take"`
}

// set returns the names of the options that are set.
func (o *options) set() []string {
	var set []string
	for name, isSet := range map[string]bool{
		"action": o.Action != "", "force": o.Force, "workloads": len(o.Workloads) > 0, "choices": len(o.Choices) > 0,
		"revision": o.Revision != 0, "for": o.For != "", "full": o.Full, "scope": o.Scope != "", "object": o.Object != "",
	} {
		if isSet {
			set = append(set, name)
		}
	}
	slices.Sort(set)
	return set
}

// invocation is a command of the plugin. Flags have their values after an equals sign, so that no value is taken for another flag.
type invocation struct {
	command   string
	arguments []string
	flags     []string
	namespace string
	// dryRun makes it a preview. asks is set if the command asks unless it has --yes.
	dryRun, asks bool
}

// previewed returns the command that is run after the preview.
func (i *invocation) previewed() *invocation {
	run := *i
	run.dryRun = false
	return &run
}

// allFlags returns the flags, with the one that makes it a preview or lets it write without a question.
func (i *invocation) allFlags() []string {
	switch {
	case i.dryRun:
		return append(slices.Clone(i.flags), "--dry-run="+cli.DryRunServer)
	case i.asks:
		return append(slices.Clone(i.flags), "--yes")
	}
	return i.flags
}

// args returns the arguments of the command. No word behind -- is a flag.
func (i *invocation) args() []string {
	args := append([]string{i.command}, i.allFlags()...)
	if i.namespace != "" {
		args = append(args, "--namespace="+i.namespace)
	}
	return slices.Concat(args, []string{"--"}, i.arguments)
}

// line returns the command as a user writes it, with the flags of the connection.
func (i *invocation) line(connection []string) string {
	words := slices.Concat([]string{"kubectl", "slipstream", i.command}, i.arguments, i.allFlags())
	if i.namespace != "" {
		words = append(words, "-n", i.namespace)
	}
	words = append(words, connection...)
	for at := range words {
		words[at] = cli.Quoted(words[at])
	}
	return strings.Join(words, " ")
}

// invoke returns the command for an action on an object. change is the Change, for the actions of one.
func invoke(a action, of target, chosen options, change *v1alpha1.Change, preview bool) (*invocation, error) {
	for _, name := range chosen.set() {
		if !slices.Contains(a.options, name) {
			return nil, &refusal{http.StatusBadRequest, fmt.Sprintf("%s has no option %q", a.name, name), ""}
		}
	}
	i := &invocation{
		command: a.command, arguments: []string{a.prefix + of.Name}, namespace: of.Namespace, dryRun: preview && a.writes, asks: a.asks,
	}
	if of.Resource == ofObjects {
		i.arguments = nil
	}
	if a.name == "restore" {
		i.restore(change)
	}
	if err := i.add(a, &chosen); err != nil {
		return nil, err
	}
	return i, nil
}

// restore sets the arguments of restore: the object of a Change, and the Change, which may be in another namespace.
func (i *invocation) restore(change *v1alpha1.Change) {
	object := change.Spec.Object
	version, _ := schema.ParseGroupVersion(object.APIVersion) // The server validates it.
	i.arguments = []string{version.WithResource(object.Resource).GroupResource().String() + "/" + object.Name}
	i.flags = []string{"--to=" + change.Namespace + "/" + change.Name}
	i.namespace = object.Namespace
}

// add adds the options.
func (i *invocation) add(a action, chosen *options) error {
	switch chosen.Action {
	case "":
	case "all", "catalog", "cluster":
		i.flags = append(i.flags, "--action="+chosen.Action)
	default:
		return wrongText("action", chosen.Action)
	}
	switch chosen.Scope {
	case "":
	case "all", "crds", "instances":
		i.flags = append(i.flags, "--scope="+chosen.Scope)
	default:
		return wrongText("scope", chosen.Scope)
	}
	if chosen.Force {
		i.flags = append(i.flags, "--force")
	}
	if chosen.Full {
		i.flags = append(i.flags, "--full")
	}
	if chosen.Revision < 0 {
		return wrongText("revision", strconv.FormatInt(chosen.Revision, 10))
	}
	if chosen.Revision > 0 {
		i.flags = append(i.flags, "--to="+strconv.FormatInt(chosen.Revision, 10))
	}
	if chosen.For != "" {
		if duration, err := time.ParseDuration(chosen.For); err != nil || duration <= 0 {
			return wrongText("duration", chosen.For)
		}
		i.flags = append(i.flags, "--for="+chosen.For)
	}
	if err := i.addWorkloads(chosen.Workloads); err != nil {
		return err
	}
	if err := i.addChoices(a, chosen.Choices); err != nil {
		return err
	}
	return i.addObject(a, chosen.Object)
}

// addWorkloads adds the workloads that are synced. A comma would separate two of them.
func (i *invocation) addWorkloads(workloads []string) error {
	if len(workloads) > maxItems {
		return &refusal{http.StatusBadRequest, fmt.Sprintf("More than %d workloads cannot be chosen", maxItems), "Sync all of them"}
	}
	for _, workload := range workloads {
		if _, err := cli.ParseWorkload(workload); err != nil || checkText("workload", workload) != nil || strings.ContainsAny(workload, `,"`) {
			return wrongText("workload", workload)
		}
		i.flags = append(i.flags, "--workloads="+workload)
	}
	return nil
}

// addChoices adds the decisions about conflicts. Without any, the command shows both sides of each field.
func (i *invocation) addChoices(a action, choices []choice) error {
	if !slices.Contains(a.options, "choices") {
		return nil
	}
	if len(choices) > maxItems {
		return &refusal{http.StatusBadRequest, fmt.Sprintf("More than %d fields cannot be decided at once", maxItems), "Decide about some first"}
	}
	flags := map[string]string{"ours": "--keep=", "theirs": "--take="}
	for _, c := range choices {
		if err := checkText("field", c.Field); err != nil {
			return err
		}
		flag, known := flags[c.Take]
		if !known {
			return wrongText("decision", c.Take)
		}
		i.flags = append(i.flags, flag+c.Field)
	}
	return nil
}

// addObject adds an object as KIND/NAME.
func (i *invocation) addObject(a action, object string) error {
	if object == "" {
		if a.name == "blame" {
			return &refusal{http.StatusBadRequest, "The object is missing", ""}
		}
		return nil
	}
	if kind, name, qualified := strings.Cut(object, "/"); checkText("object", object) != nil || !qualified || kind == "" || name == "" {
		return wrongText("object", object)
	}
	i.arguments = append(i.arguments, object)
	return nil
}
