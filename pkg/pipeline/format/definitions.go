// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package format

import "github.com/configbutler/slipstream/pkg/pipeline/item"

// maxNames is how many definitions a call names at most, those that are gone included. cluster-whisperer takes no more; a consumer
// asks a language model about each.
const maxNames = 200

// named is what a consumer that knows definitions by a name alone is told of one.
type named struct {
	name string
	gone bool
	keys []item.Key
}

// byName lists those that are gone, then those that are there. A definition that was replaced by one with the same name, but for
// another kind, is not gone: the call that tells of the one tells of the other.
func byName(batch Batch, name func(item.Key) string) []named {
	there := make([]named, 0, len(batch.Upserts))
	position := map[string]int{}
	for _, upsert := range batch.Upserts {
		position[name(upsert.Key)] = len(there)
		there = append(there, named{name: name(upsert.Key), keys: []item.Key{upsert.Key}})
	}
	var gone []named
	for _, key := range batch.Deletes {
		if at, found := position[name(key)]; found {
			there[at].keys = append(there[at].keys, key)
			continue
		}
		gone = append(gone, named{name: name(key), gone: true, keys: []item.Key{key}})
	}
	return append(gone, there...)
}

// split separates the names of those that are gone from the others. Neither list is nil.
func split(definitions []named) (upserts, deletes []string, keys []item.Key) {
	upserts, deletes = []string{}, []string{}
	for _, definition := range definitions {
		if definition.gone {
			deletes = append(deletes, definition.name)
		} else {
			upserts = append(upserts, definition.name)
		}
		keys = append(keys, definition.keys...)
	}
	return upserts, deletes, keys
}
