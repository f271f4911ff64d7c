// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import "github.com/configbutler/slipstream/pkg/pipeline/item"

// maxNames bounds the definitions in a call, deleted ones included. It is the limit of cluster-whisperer; consumers query a language model
// for each definition.
const maxNames = 200

// namedDefinition is a change of a definition for consumers that identify definitions by a name.
type namedDefinition struct {
	name    string
	deleted bool
	// keys are the changes of the batch that it stands for.
	keys []item.Key
}

// byName groups the definitions of a batch by their names, deleted ones first. A definition that was replaced by one with the same name but
// another kind does not count as deleted: one upsert stands for both changes.
func byName(batch item.Batch, name func(item.Key) string) []namedDefinition {
	upserts := make([]namedDefinition, 0, len(batch.Upserts))
	position := map[string]int{}
	for _, upsert := range batch.Upserts {
		position[name(upsert.Key)] = len(upserts)
		upserts = append(upserts, namedDefinition{name: name(upsert.Key), keys: []item.Key{upsert.Key}})
	}
	var deletes []namedDefinition
	for _, key := range batch.Deletes {
		if at, found := position[name(key)]; found {
			upserts[at].keys = append(upserts[at].keys, key)
			continue
		}
		deletes = append(deletes, namedDefinition{name: name(key), deleted: true, keys: []item.Key{key}})
	}
	return append(deletes, upserts...)
}

// split separates the names of deleted definitions from the others. Neither list is nil.
func split(definitions []namedDefinition) (upserts, deletes []string, keys []item.Key) {
	upserts, deletes = []string{}, []string{}
	for _, definition := range definitions {
		if definition.deleted {
			deletes = append(deletes, definition.name)
		} else {
			upserts = append(upserts, definition.name)
		}
		keys = append(keys, definition.keys...)
	}
	return upserts, deletes, keys
}
