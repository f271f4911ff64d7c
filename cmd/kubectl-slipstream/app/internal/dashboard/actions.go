// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// action is a command of the plugin that the page runs on an object.
type action struct {
	name, title string
	// command is that of the plugin, and prefix what precedes the name of the object in its argument. It is empty for what patch does.
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
				needs: permission{"create", resource, "dismiss"},
			},
			{name: "retry", title: "Try again", command: "retry", writes: true, needs: permission{"create", resource, "retry"}},
		}
	case ofDestinations:
		return append([]action{{
			name: "sync", title: "Compare with the cluster", command: "sync", prefix: "gitdestination/", options: []string{"full"}, writes: true,
			needs: permission{"create", resource, "sync"},
		}}, suspensions(resource, "")...)
	case ofPipelines:
		return append([]action{{
			name: "sync-pipeline", title: "Send what is missing", command: "sync-pipeline", options: []string{"scope", "full"}, writes: true,
			needs: permission{"create", resource, "sync"},
		}}, suspensions(resource, "syncpipeline/")...)
	case ofPolicies:
		return []action{save(resource)}
	case ofChanges:
		return changeActions()
	case ofObjects:
		return []action{{
			name: "blame", title: "Who wrote each line", command: "blame", options: []string{"object"}, needs: permission{"list", ofChanges, ""},
		}}
	}
	return nil
}

func environmentActions() []action {
	const of = ofEnvironments
	return []action{
		save(of),
		{
			name: "sync", title: "Take changes", command: "sync", options: []string{"action", "force", "workloads"}, writes: true,
			needs: permission{"create", of, "sync"},
		},
		{name: "dismiss", title: "Dismiss", command: "dismiss", writes: true, needs: permission{"create", of, "dismiss"}},
		{
			name: "undismiss", title: "Offer again", command: "undismiss", writes: true, needs: permission{"create", of, "undismiss"},
			pointless: unless("Nothing is dismissed", has("status", "dismissedCatalogSync"), has("status", "dismissedDependencySync")),
		},
		{
			name: "resolve", title: "Resolve conflicts", command: "resolve", options: []string{"choices"}, writes: true,
			needs: permission{"create", of, "resolve"}, pointless: unless("There are no conflicts", has("status", "conflicts")),
		},
		{
			name: "rollback", title: "Go back to a revision", command: "rollback", options: []string{"revision"}, writes: true,
			needs: permission{"create", of, "rollback"},
		},
		unpin(of, ""),
		{name: "rediscover", title: "Search for dependencies", command: "rediscover", writes: true, needs: permission{"create", of, "rediscover"}},
		{name: "diff", title: "Show what a sync would change", command: "diff", needs: permission{"get", of, "diff"}},
		{
			name: "explain-drift", title: "Explain the difference", command: "explain-drift", options: []string{"object"},
			needs: permission{"get", of, "diff"},
		},
		{name: "missing", title: "Show what is missing", command: "missing", needs: permission{"get", ofCatalogs, ""}},
	}
}

func catalogActions() []action {
	const of, prefix = ofCatalogs, "catalog/"
	return []action{
		{name: "sync", title: "Read the source now", command: "sync", prefix: prefix, writes: true, needs: permission{"create", of, "sync"}},
		{
			name: "rollback", title: "Go back to a revision", command: "rollback", prefix: prefix, options: []string{"revision"}, writes: true,
			needs: permission{"create", of, "rollback"},
		},
		unpin(of, prefix),
		{name: "pause", title: "Pause", command: "pause", options: []string{"for"}, writes: true, needs: permission{"patch", of, ""}},
		{
			name: "resume", title: "End the pause", command: "resume", writes: true, needs: permission{"patch", of, ""},
			pointless: unless("It is not paused", has("spec", "pauseUntil")),
		},
	}
}

// changeActions are the actions of a Change. Those that write also need permissions for its object.
func changeActions() []action {
	const of = ofChanges
	return []action{
		{name: "show", title: "Show the change", command: "show", needs: permission{"get", of, "diff"}},
		{name: "undo", title: "Undo this change", command: "undo", writes: true, asks: true, needs: permission{"get", of, "diff"}},
		{
			name: "restore", title: "Restore the object to this state", command: "restore", writes: true, asks: true,
			needs: permission{"get", ofDestinations, "objects"}, pointless: deletes,
		},
	}
}

// deletes says why there is nothing to restore after a deletion.
func deletes(change map[string]any) string {
	operation, _, err := unstructured.NestedString(change, "spec", "operation")
	if err == nil && v1alpha1.ChangeOperation(operation) == v1alpha1.ChangeDelete {
		return "The object did not exist after this change: undo creates it again"
	}
	return ""
}

// save is the action of changing fields of the spec, which is no command.
func save(resource string) action {
	return action{name: "save", title: "Save", writes: true, needs: permission{"patch", resource, ""}}
}

func unpin(resource, prefix string) action {
	return action{
		name: "unpin", title: "Let it go forward again", command: "unpin", prefix: prefix, writes: true, needs: permission{"patch", resource, ""},
		pointless: unless("It is not pinned", has("spec", "pinnedRevision")),
	}
}

func suspensions(resource, prefix string) []action {
	return []action{
		{
			name: "suspend", title: "Suspend", command: "suspend", prefix: prefix, writes: true, needs: permission{"patch", resource, ""},
			pointless: func(object map[string]any) string {
				if has("spec", "suspend")(object) {
					return "It is suspended already"
				}
				return ""
			},
		},
		{
			name: "unsuspend", title: "End the suspension", command: "unsuspend", prefix: prefix, writes: true, needs: permission{"patch", resource, ""},
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
func (w *workspace) actions(c *call) error {
	var of target
	if err := c.decode(&of); err != nil {
		return err
	}
	if err := of.checkWith(ofObjects); err != nil {
		return err
	}
	all := actionsOf(of.Resource)
	object, err := w.stateOf(c.r.Context(), of)
	if err != nil {
		return err
	}
	needed := make([][]authorizationv1.ResourceAttributes, len(all))
	for i, a := range all {
		needed[i] = []authorizationv1.ResourceAttributes{a.needs.attributes(of)}
		if of.Resource == ofChanges {
			needed[i] = append(needed[i], written(a, object)...)
		}
	}
	missing, err := w.reviews.missing(c.r.Context(), needed)
	if err != nil {
		return err
	}
	out := make([]offered, len(all))
	for i, a := range all {
		reason := missing[i]
		if reason == "" && a.pointless != nil && object != nil {
			reason = a.pointless(object)
		}
		out[i] = offered{a.name, a.title, reason == "", reason}
	}
	return respond(c, map[string]any{"actions": out})
}

// stateOf returns the object that actions are about, nil if the user may not read it.
func (w *workspace) stateOf(ctx context.Context, of target) (map[string]any, error) {
	if of.Resource == ofObjects {
		return nil, nil
	}
	found, err := w.cluster.objectsOf(of.Resource, of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err) && of.Resource == ofPolicies:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return found.Object, nil
}
