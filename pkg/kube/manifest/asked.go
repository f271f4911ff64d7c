// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

// ownership says whether somebody asked for the value of a field, given as a path in the notation of managedFields
// ("f:spec", "f:ports", ...). It tells a value that a user chose from one that the server allocated.
type ownership func(path ...string) bool

// askedFields returns what the object's managedFields know. The API server takes down who set which field before it
// allocates, so an allocated value has no owner until somebody sends one of his own. An object that never was in a
// cluster, having no uid, holds only what was asked for.
func askedFields(object map[string]any) ownership {
	metadata := mapAt(object, "metadata")
	live := textAt(metadata, "uid") != ""
	entries, _ := metadata["managedFields"].([]any)
	return func(path ...string) bool {
		if !live {
			return true
		}
		for _, entry := range entries {
			fields, _ := entry.(map[string]any)
			if owned := mapAt(fields, "fieldsV1"); owned != nil && mapAt(owned, path...) != nil {
				return true
			}
		}
		return false
	}
}
