// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

// ownership reports whether a field manager owns a field, given as a path in the notation of managedFields ("f:spec",
// "f:ports", ...). It distinguishes a value that a user set from one that the server allocated.
type ownership func(path ...string) bool

// ownershipOf reads the object's managedFields. The API server records field owners before it allocates values, so an
// allocated value has no owner until a client sends one. An object without a uid was never in a cluster and holds only
// values that a user set.
func ownershipOf(object map[string]any) ownership {
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
