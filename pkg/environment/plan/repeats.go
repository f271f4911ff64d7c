// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "fmt"

// keyed are the lists of pods in which API servers let an item be there more than once, and what items are found by. What is
// applied must have each once. Other lists have these names as well, such as the ports of Services: an item without the first
// key is of one of them.
var keyed = map[string][]string{
	"env": {"name"}, "ports": {"containerPort", "protocol"}, "imagePullSecrets": {"name"}, "hostAliases": {"ip"},
}

// withoutRepeats takes out of the lists in a value, in place, what is there again later: of variables, pods have the last one.
func withoutRepeats(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if items, ok := inner.([]any); ok && keyed[name] != nil {
				value[name] = lastOfEach(items, keyed[name])
			}
			withoutRepeats(inner)
		}
	case []any:
		for _, item := range value {
			withoutRepeats(item)
		}
	}
}

func lastOfEach(items []any, keys []string) []any {
	later := map[string]int{}
	for i, item := range items {
		later[keyIn(item, keys)] = i
	}
	kept := make([]any, 0, len(items))
	for i, item := range items {
		if fields, _ := item.(map[string]any); fields[keys[0]] == nil || later[keyIn(item, keys)] == i {
			kept = append(kept, item)
		}
	}
	return kept
}

// keyIn is what an item is found by. A port without a protocol is one of TCP.
func keyIn(item any, keys []string) string {
	fields, _ := item.(map[string]any)
	text := ""
	for _, key := range keys {
		value := fields[key]
		if key == "protocol" && value == nil {
			value = "TCP"
		}
		text += fmt.Sprintf("%v\n", value)
	}
	return text
}
