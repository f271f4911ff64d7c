// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// permission is what an action needs of a resource of configbutler.ai, or of another group.
type permission struct{ verb, group, resource, subresource string }

// own returns a permission for a resource of configbutler.ai.
func own(verb, resource, subresource string) permission {
	return permission{verb, v1alpha1.GroupName, resource, subresource}
}

// action is a command of the plugin that the page runs on an object.
type action struct {
	name, title string
	// command is that of the plugin, and prefix what precedes the name of the object in its argument.
	command, prefix string
	// options are those that the action takes.
	options []string
	// writes is set if it changes something. Its command has --dry-run then.
	writes bool
	// asks is set if the command asks unless it has --yes.
	asks bool
	// needs is the permission without which the server refuses it.
	needs permission
	// pointless returns why the state of the object leaves nothing to do. It may be nil.
	pointless func(map[string]any) string
}

const (
	ofEnvironments = "environments"
	ofCatalogs     = "appcatalogs"
	ofRecords      = "syncstatuses"
	ofDestinations = "gitdestinations"
	ofPipelines    = "syncpipelines"
	ofChanges      = "changes"
	// ofObjects are the objects that GitDestinations mirror.
	ofObjects = "objects"
)

// actionsOf returns the actions of a resource.
func actionsOf(resource string) []action {
	switch resource {
	case ofEnvironments:
		return environmentActions()
	case ofCatalogs:
		return catalogActions()
	case ofRecords:
		return []action{
			{
				name: "dismiss", title: "Dismiss", command: "dismiss", prefix: "syncstatus/", writes: true,
				needs: own("create", resource, "dismiss"),
			},
			{name: "retry", title: "Try again", command: "retry", writes: true, needs: own("create", resource, "retry")},
		}
	case ofDestinations:
		return append([]action{{
			name: "sync", title: "Compare with the cluster", command: "sync", prefix: "gitdestination/", options: []string{"full"}, writes: true,
			needs: own("create", resource, "sync"),
		}}, suspensions(resource, "")...)
	case ofPipelines:
		return append([]action{{
			name: "sync-pipeline", title: "Send what is missing", command: "sync-pipeline", options: []string{"scope", "full"}, writes: true,
			needs: own("create", resource, "sync"),
		}}, suspensions(resource, "syncpipeline/")...)
	case ofChanges:
		return changeActions()
	case ofObjects:
		return []action{{
			name: "blame", title: "Who wrote each line", command: "blame", options: []string{"object"}, needs: own("list", ofChanges, ""),
		}}
	}
	return nil
}

func environmentActions() []action {
	const of = ofEnvironments
	return []action{
		{
			name: "sync", title: "Take changes", command: "sync", options: []string{"action", "force", "workloads"}, writes: true,
			needs: own("create", of, "sync"),
		},
		{name: "dismiss", title: "Dismiss", command: "dismiss", writes: true, needs: own("create", of, "dismiss")},
		{
			name: "undismiss", title: "Offer again", command: "undismiss", writes: true, needs: own("create", of, "undismiss"),
			pointless: unless("Nothing is dismissed", has("status", "dismissedCatalogSync"), has("status", "dismissedDependencySync")),
		},
		{
			name: "resolve", title: "Resolve conflicts", command: "resolve", options: []string{"choices"}, writes: true,
			needs: own("create", of, "resolve"), pointless: unless("There are no conflicts", has("status", "conflicts")),
		},
		{
			name: "rollback", title: "Go back to a revision", command: "rollback", options: []string{"revision"}, writes: true,
			needs: own("create", of, "rollback"),
		},
		unpin(of, ""),
		{name: "rediscover", title: "Search for dependencies", command: "rediscover", writes: true, needs: own("create", of, "rediscover")},
		{name: "diff", title: "Show what a sync would change", command: "diff", needs: own("get", of, "diff")},
		{
			name: "explain-drift", title: "Explain the difference", command: "explain-drift", options: []string{"object"},
			needs: own("get", of, "diff"),
		},
		{name: "missing", title: "Show what is missing", command: "missing", needs: own("get", ofCatalogs, "")},
	}
}

func catalogActions() []action {
	const of, prefix = ofCatalogs, "catalog/"
	return []action{
		{name: "sync", title: "Read the source now", command: "sync", prefix: prefix, writes: true, needs: own("create", of, "sync")},
		{
			name: "rollback", title: "Go back to a revision", command: "rollback", prefix: prefix, options: []string{"revision"}, writes: true,
			needs: own("create", of, "rollback"),
		},
		unpin(of, prefix),
		{name: "pause", title: "Pause", command: "pause", options: []string{"for"}, writes: true, needs: own("patch", of, "")},
		{
			name: "resume", title: "End the pause", command: "resume", writes: true, needs: own("patch", of, ""),
			pointless: unless("It is not paused", has("spec", "pauseUntil")),
		},
	}
}

// changeActions are the actions of a Change. Those that write also need permissions for its object.
func changeActions() []action {
	const of = ofChanges
	return []action{
		{name: "show", title: "Show the change", command: "show", needs: own("get", of, "diff")},
		{name: "undo", title: "Undo this change", command: "undo", writes: true, asks: true, needs: own("get", of, "diff")},
		{
			name: "restore", title: "Restore the object to this state", command: "restore", writes: true, asks: true,
			needs: own("get", ofDestinations, "objects"),
		},
	}
}

func unpin(resource, prefix string) action {
	return action{
		name: "unpin", title: "Let it go forward again", command: "unpin", prefix: prefix, writes: true, needs: own("patch", resource, ""),
		pointless: unless("It is not pinned", has("spec", "pinnedRevision")),
	}
}

func suspensions(resource, prefix string) []action {
	return []action{
		{
			name: "suspend", title: "Suspend", command: "suspend", prefix: prefix, writes: true, needs: own("patch", resource, ""),
			pointless: func(object map[string]any) string {
				if has("spec", "suspend")(object) {
					return "It is suspended already"
				}
				return ""
			},
		},
		{
			name: "unsuspend", title: "End the suspension", command: "unsuspend", prefix: prefix, writes: true, needs: own("patch", resource, ""),
			pointless: unless("It is not suspended", has("spec", "suspend")),
		},
	}
}

// has returns whether a field of an object has a value that is not its zero.
func has(path ...string) func(map[string]any) bool {
	return func(object map[string]any) bool {
		value, found, err := unstructured.NestedFieldNoCopy(object, path...)
		if !found || err != nil {
			return false
		}
		switch value := value.(type) {
		case nil:
			return false
		case bool:
			return value
		case string:
			return value != ""
		case []any:
			return len(value) > 0
		}
		return true
	}
}

// unless returns why an action has nothing to do unless one of the conditions is met.
func unless(why string, conditions ...func(map[string]any) bool) func(map[string]any) string {
	return func(object map[string]any) string {
		if slices.ContainsFunc(conditions, func(met func(map[string]any) bool) bool { return met(object) }) {
			return ""
		}
		return why
	}
}

// offered is an action as the page shows it.
type offered struct {
	Action  string `json:"action"`
	Title   string `json:"title"`
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason"`
}

// actions responds with the actions of an object, and why the user cannot run some.
func (s *server) actions(c *call) error {
	var of target
	if err := c.decode(&of); err != nil {
		return err
	}
	if of.Resource == ofObjects {
		if err := checkName("namespace", of.Namespace); err != nil {
			return err
		}
	} else if err := of.check(); err != nil {
		return err
	}
	all := actionsOf(of.Resource)
	needed := make([][]permission, len(all))
	var object map[string]any
	if of.Resource != ofObjects && len(all) > 0 {
		found, err := s.cluster.objectsOf(of.Resource, of.Namespace).Get(c.r.Context(), of.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		object = found.Object
	}
	for i, a := range all {
		needed[i] = append([]permission{a.needs}, written(of.Resource, a, object)...)
	}
	missing, err := s.reviews.missing(c.r.Context(), of, needed)
	if err != nil {
		return err
	}
	out := make([]offered, len(all))
	for i, a := range all {
		out[i] = offered{a.name, a.title, missing[i] == "", missing[i]}
		if missing[i] == "" && a.pointless != nil {
			out[i].Reason = a.pointless(object)
			out[i].Allowed = out[i].Reason == ""
		}
	}
	return respond(c, map[string]any{"actions": out})
}
