// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/configbutler/slipstream/test/devcluster/filelock"
)

// sopsPackage is the command that the module hack/sops pins.
const sopsPackage = "github.com/getsops/sops/v3/cmd/sops"

// Sops returns the command sops of the version that the Go module in the folder module
// pins, and builds it first if the cache does not have it. Like Build it may be called
// from several processes at once. The cache is slipstream/sops below os.UserCacheDir.
func Sops(ctx context.Context, module string) (string, error) {
	key, err := pinsKey(module)
	if err != nil {
		return "", err
	}
	root, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the user's cache: %w", err)
	}
	folder := filepath.Join(root, "slipstream", "sops", key)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("making the folder of sops: %w", err)
	}
	lock, err := filelock.Acquire(ctx, folder+".lock")
	if err != nil {
		return "", err
	}
	program := filepath.Join(folder, "sops")
	return program, errors.Join(buildSops(ctx, module, program), lock.Release())
}

// buildSops makes the program, unless it is there. The caller holds the folder's lock.
func buildSops(ctx context.Context, module, program string) error {
	if complete(program) {
		return nil
	}
	unfinished := program + ".unfinished"
	if err := goBuild(ctx, module, unfinished, sopsPackage, "-ldflags", "-s -w"); err != nil {
		return err
	}
	if err := os.Rename(unfinished, program); err != nil {
		return fmt.Errorf("putting sops in place: %w", err)
	}
	return nil
}
