// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// prune removes the revisions that are too old, and then what nothing names any more.
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

// Forget removes all that is kept of an environment.
func (c *Copies) Forget(ctx context.Context, uid types.UID) error {
	defer c.lock(uid)()
	for _, prefix := range []string{headsOf(uid), contentsOf(uid)} {
		// A prefix ends with a slash, the byte before 0.
		if err := c.table.DeleteRange(ctx, prefix, strings.TrimSuffix(prefix, "/")+"0"); err != nil {
			return fmt.Errorf("forget what was applied in an environment that is gone: %w", err)
		}
	}
	if err := c.table.Delete(ctx, currentRow(uid), environmentRow(uid)); err != nil {
		return fmt.Errorf("forget what was applied in an environment that is gone: %w", err)
	}
	return nil
}

// Environments returns those of which there may be copies.
func (c *Copies) Environments(ctx context.Context) ([]Environment, error) {
	var environments []Environment
	prefix := environmentRow("")
	for row, err := range c.table.Scan(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("look of which environments there are copies: %w", err)
		}
		namespace, name, _ := strings.Cut(string(row.Value), string(types.Separator))
		environments = append(environments, Environment{types.NamespacedName{Namespace: namespace, Name: name}, types.UID(row.Key[len(prefix):])})
	}
	return environments, nil
}

// Sweep forgets the environments that are gone, and what deaths have left of the others. It is called before anything is put.
func (c *Copies) Sweep(ctx context.Context, exists func(context.Context, Environment) (bool, error)) error {
	environments, err := c.Environments(ctx)
	if err != nil {
		return err
	}
	for _, environment := range environments {
		there, err := exists(ctx, environment)
		switch {
		case err != nil:
			return fmt.Errorf("look whether environment %s is there: %w", environment, err)
		case there:
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

// sweep removes the content that no head names.
func (c *Copies) sweep(ctx context.Context, uid types.UID) error {
	there, err := c.history(ctx, uid)
	if err != nil {
		return err
	}
	var keys []string
	named, prefix := there.contents(), contentsOf(uid)
	for row, err := range c.table.Scan(ctx, prefix) {
		if err != nil {
			return fmt.Errorf("look for copies that nothing names: %w", err)
		}
		if !named.Has(row.Key[len(prefix):]) {
			keys = append(keys, row.Key)
		}
	}
	return c.table.Delete(ctx, keys...)
}
