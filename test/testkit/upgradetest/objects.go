// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/configbutler/slipstream/test/devcluster"
)

// Object is the part of an object that must be preserved.
type Object struct {
	Metadata struct {
		UID               string            `json:"uid"`
		CreationTimestamp string            `json:"creationTimestamp"`
		Generation        int64             `json:"generation"`
		Labels            map[string]string `json:"labels"`
		Annotations       map[string]string `json:"annotations"`
		Finalizers        []string          `json:"finalizers"`
	} `json:"metadata"`
	Spec   any `json:"spec"`
	Status any `json:"status"`
}

// Objects returns all objects of the server by kind, namespace and name.
func Objects(ctx context.Context, as devcluster.Kubectl) (map[string]Object, error) {
	kinds, err := as.Run(ctx, "api-resources", "--api-group=configbutler.ai", "--verbs=list", "--output=name")
	if err != nil {
		return nil, err
	}
	out, err := as.Run(ctx, "get", strings.Join(strings.Fields(kinds), ","), "-A", "-o", "json")
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, err
	}
	all := map[string]Object{}
	for _, item := range list.Items {
		var name struct {
			Kind     string `json:"kind"`
			Metadata struct{ Namespace, Name string }
		}
		var content Object
		if err := json.Unmarshal(item, &name); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(item, &content); err != nil {
			return nil, err
		}
		content.Status = lasting(content.Status)
		all[name.Kind+" "+name.Metadata.Namespace+"/"+name.Metadata.Name] = content
	}
	return all, nil
}

// passing are the fields of a status that depend on the running process.
var passing = []string{"lastTransitionTime", "lastSeedTime", "lastListTime", "lastRetentionTime", "leaseHolder", "records"}

// lasting returns the part of a status that must be preserved. Conditions are sorted, because a starting server first sets them to
// Unknown.
func lasting(status any) any {
	switch value := status.(type) {
	case map[string]any:
		for _, field := range passing {
			delete(value, field)
		}
		for name, field := range value {
			value[name] = lasting(field)
		}
		if conditions, ok := value["conditions"].([]any); ok {
			// It becomes unknown when there was no change for a while, as during the restart of all servers on a busy machine.
			conditions = slices.DeleteFunc(conditions, func(c any) bool { return conditionType(c) == "AuthorsReported" })
			value["conditions"] = conditions
			slices.SortFunc(conditions, func(a, b any) int { return strings.Compare(conditionType(a), conditionType(b)) })
		}
	case []any:
		for index, element := range value {
			value[index] = lasting(element)
		}
	}
	return status
}

func conditionType(condition any) string {
	fields, _ := condition.(map[string]any)
	return fmt.Sprint(fields["type"])
}

// BetweenVersions compares objects of two versions: the newer one can have other reasons, messages, conditions and fields of a status.
func BetweenVersions() cmp.Options {
	return cmp.Options{cmp.FilterPath(isWording, cmp.Ignore()), cmp.FilterPath(isOfVersion, cmp.Ignore()), conditionsByType}
}

// isWording reports whether a path is the reason or the message of a condition, which may differ between versions.
func isWording(path cmp.Path) bool {
	last, ok := path.Last().(cmp.MapIndex)
	if !ok || !strings.Contains(path.GoString(), `["conditions"]`) {
		return false
	}
	key := last.Key().String()
	return key == "reason" || key == "message"
}

// isOfVersion reports whether a path is a status field or condition that only the newer version has, or a setting that it has removed.
func isOfVersion(path cmp.Path) bool {
	last, ok := path.Last().(cmp.MapIndex)
	if !ok {
		return false
	}
	before, after := last.Values()
	isAdded, isGone := !before.IsValid(), !after.IsValid()
	return isAdded && strings.Contains(path.GoString(), ".Status") || isGone && last.Key().String() == "reminders"
}

// conditionsByType compares conditions by their type, because another version may have more.
var conditionsByType = cmp.FilterPath(isConditions, cmp.Transformer("byType", func(conditions []any) map[string]any {
	byType := map[string]any{}
	for _, condition := range conditions {
		if fields, ok := condition.(map[string]any); ok {
			byType[fmt.Sprint(fields["type"])] = condition
		}
	}
	return byType
}))

// isConditions reports whether a path is the list of conditions of an object.
func isConditions(path cmp.Path) bool {
	list, ok := path.Index(-2).(cmp.MapIndex)
	_, isAsserted := path.Last().(cmp.TypeAssertion)
	return ok && isAsserted && list.Key().String() == "conditions"
}
