// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"fmt"

	"go.etcd.io/bbolt"
)

// Inspect is [Verify] for callers that need a sound file: it returns an error for the first problem, and otherwise the
// state of the file.
func Inspect(ctx context.Context, path string) (FileState, error) {
	var findings []Finding
	err := Verify(ctx, path, Verification{
		Found:    func(finding Finding) { findings = append(findings, finding) },
		Checking: func(string, int64) {},
	})
	if err != nil {
		return FileState{}, err
	}
	if len(findings) > 0 {
		return FileState{}, fmt.Errorf("the store is damaged in %d places, first: %s", len(findings), findings[0])
	}
	return describe(path)
}

// describe reads the state of a sound file.
func describe(path string) (state FileState, err error) {
	err = viewFile(path, func(tx *bbolt.Tx) error {
		state = stateOf(tx)
		return nil
	})
	return state, err
}
