// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// prune deletes the oldest revisions, and then the contents that no head names any more.
func (c *Copies) prune(ctx context.Context, uid types.UID, before, after history) error {
	revisions := after.revisions()
	for _, revision := range revisions[:max(len(revisions)-c.keep, 0)] {
		if revision != after.current {
			delete(after.heads, revision)
		}
	}
	var keys []string
	for revision := range before.heads {
		if after.heads[revision] == nil {
			keys = append(keys, headsOf(uid)+numbered(revision))
		}
	}
	for number := range before.contents().Difference(after.contents()) {
		keys = append(keys, contentsOf(uid)+number)
	}
	return c.table.Delete(ctx, keys...)
}

// Forget deletes all copies of an environment.
func (c *Copies) Forget(ctx context.Context, uid types.UID) error {
	defer c.lock(uid)()
	for _, prefix := range []string{headsOf(uid), contentsOf(uid)} {
		// A prefix ends with a slash, the byte before 0.
		if err := c.table.DeleteRange(ctx, prefix, strings.TrimSuffix(prefix, "/")+"0"); err != nil {
			return fmt.Errorf("delete the copies of a deleted environment: %w", err)
		}
	}
	if err := c.table.Delete(ctx, currentRow(uid), environmentRow(uid)); err != nil {
		return fmt.Errorf("delete the copies of a deleted environment: %w", err)
	}
	return nil
}

// Environments returns the environments that may have copies.
func (c *Copies) Environments(ctx context.Context) ([]Environment, error) {
	var environments []Environment
	prefix := environmentRow("")
	for row, err := range c.table.Scan(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("list the environments that have copies: %w", err)
		}
		namespace, name, _ := strings.Cut(string(row.Value), string(types.Separator))
		environments = append(environments, Environment{types.NamespacedName{Namespace: namespace, Name: name}, types.UID(row.Key[len(prefix):])})
	}
	return environments, nil
}

// Sweep deletes the copies of environments that do not exist, and content that no head names, which a process that stopped
// during a write leaves. It must be called before the first Put.
func (c *Copies) Sweep(ctx context.Context, exists func(context.Context, Environment) (bool, error)) error {
	environments, err := c.Environments(ctx)
	if err != nil {
		return err
	}
	for _, environment := range environments {
		found, err := exists(ctx, environment)
		switch {
		case err != nil:
			return fmt.Errorf("check whether environment %s exists: %w", environment, err)
		case found:
			err = c.sweep(ctx, environment.UID)
		default:
			err = c.Forget(ctx, environment.UID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sweep deletes the content that no head names.
func (c *Copies) sweep(ctx context.Context, uid types.UID) error {
	stored, err := c.history(ctx, uid)
	if err != nil {
		return err
	}
	var keys []string
	named, prefix := stored.contents(), contentsOf(uid)
	for key, err := range c.table.Keys(ctx, prefix) {
		if err != nil {
			return fmt.Errorf("list the contents of copies: %w", err)
		}
		if !named.Has(key[len(prefix):]) {
			keys = append(keys, key)
		}
	}
	return c.table.Delete(ctx, keys...)
}
