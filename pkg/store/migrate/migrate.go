// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

var (
	// ErrEmptySource says that there is nothing to be copied, which is more likely a
	// wrong prefix than wanted.
	ErrEmptySource = errors.New("the source holds nothing")

	// ErrTargetNotEmpty says that the target holds something else than a part of the source.
	ErrTargetNotEmpty = errors.New("the target is not empty")

	// ErrRevisionTooLow says that the target would hand out revisions that the source
	// has handed out already.
	ErrRevisionTooLow = errors.New("the target's revision is lower than the source's")

	// ErrSourceChanged says that a server still writes.
	ErrSourceChanged = errors.New("the source changed while it was copied")

	// ErrTargetChanged says that something else writes, or that the copy is not what it should be.
	ErrTargetChanged = errors.New("the target changed while it was written")
)

// Options say what may be done to the target.
type Options struct {
	// Replace removes what the target holds first, if it is not a part of the source.
	Replace bool
	// Pad is the key that is written to until the target's revision is high enough.
	// Empty refuses a target that is too low.
	Pad string
	// Beside are files that are put in place together with stores that are files: content by name.
	Beside map[string][]byte
	// Report hears how far it is. nil is nobody.
	Report *Reporter
}

// Result is what was copied, by section.
type Result struct {
	Sections []SectionResult
	// Revision is the target's, at which it was compacted.
	Revision int64
}

// SectionResult is what was copied of one section.
type SectionResult struct {
	Section
	// Digest is what both sides hold.
	Digest
	// Copied are the keys that this run wrote, Expired those whose lease had run out.
	Copied, Expired int64
}

// copying is a migration under way.
type copying struct {
	Options
	from   []view
	target Store
}

// Copy makes the target hold what the source holds at this moment. It fails with
// one of the errors above, or with those of the stores; run it again then.
func Copy(ctx context.Context, source, target Store, o Options) (Result, error) {
	from, err := source.cut(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("reading the source: %w", err)
	}
	return copyViews(ctx, from, target, o)
}

func copyViews(ctx context.Context, from []view, target Store, o Options) (result Result, err error) {
	if err := checkNotEmpty(from); err != nil {
		return result, err
	}
	c := &copying{Options: o, from: from, target: target}
	if err := c.prepare(ctx); err != nil {
		return result, err
	}
	for i := range c.from {
		section, err := c.copySection(ctx, i)
		if err != nil {
			return result, fmt.Errorf("copying the %s: %w", c.target[i].Name, err)
		}
		result.Sections = append(result.Sections, section)
	}
	if err := c.verify(ctx, &result); err != nil {
		return result, err
	}
	for _, v := range c.from {
		if err := v.unchanged(ctx); err != nil {
			return result, err
		}
	}
	result.Revision, err = c.compact(ctx)
	return result, err
}

// checkNotEmpty refuses a source without a key.
func checkNotEmpty(from []view) error {
	keys, prefixes := int64(0), ""
	for _, v := range from {
		keys += v.keys
		prefixes += " " + v.Prefix
	}
	if keys == 0 {
		return fmt.Errorf("%w below%s: is the prefix right?", ErrEmptySource, prefixes)
	}
	return nil
}

// prepare makes sure that the target may be written to: what it holds and its revision.
func (c *copying) prepare(ctx context.Context) error {
	for i, from := range c.from {
		foreign, err := c.findForeign(ctx, i)
		if err != nil {
			return fmt.Errorf("looking at the target's %s: %w", from.Name, err)
		}
		if foreign == nil {
			continue
		}
		if !c.Replace {
			return fmt.Errorf("%w: %q is not what the source holds", ErrTargetNotEmpty, foreign)
		}
		if err := c.empty(ctx, i); err != nil {
			return fmt.Errorf("removing the target's %s: %w", from.Name, err)
		}
	}
	return c.raise(ctx)
}

// cutTarget looks at the target, in which all keys of the copy are above the source's revision.
func (c *copying) cutTarget(ctx context.Context) ([]view, error) {
	target, err := c.target.cut(ctx)
	for i := range target {
		target[i].floor = c.from[0].revision
	}
	return target, err
}

// errFound ends a comparison.
var errFound = errors.New("found")

// findForeign returns a key of the target that is no part of a copy, nil if there is none.
func (c *copying) findForeign(ctx context.Context, i int) (foreign []byte, err error) {
	target, err := c.cutTarget(ctx)
	if err != nil || target[i].keys == 0 {
		return nil, err
	}
	err = compare(ctx, c.from[i], target[i], c.counting("looking at the target", i), func(d difference) error {
		if d.missing() || d.stale() {
			return nil
		}
		foreign = d.key()
		return errFound
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return foreign, err
}

// counting reports each key of a section.
func (c *copying) counting(what string, i int) *sides {
	done := int64(0)
	return newSides(func() {
		done++
		c.Report.step(what+": "+c.from[i].Name, done, c.from[i].keys)
	})
}

// empty removes what the target holds in a section, some at a time.
func (c *copying) empty(ctx context.Context, i int) error {
	section := c.target[i]
	end := clientv3.GetPrefixRangeEnd(section.Prefix)
	for {
		page, err := section.Client.Get(ctx, section.Prefix, clientv3.WithRange(end), clientv3.WithLimit(batchKeys*8), clientv3.WithKeysOnly())
		if err != nil || len(page.Kvs) == 0 {
			return err
		}
		last := string(page.Kvs[len(page.Kvs)-1].Key)
		if _, err := section.Client.Delete(ctx, section.Prefix, clientv3.WithRange(last+"\x00")); err != nil {
			return err
		}
	}
}

// raise makes the target's revision high enough, or refuses it.
func (c *copying) raise(ctx context.Context) error {
	target, err := c.target.cut(ctx)
	if err != nil {
		return fmt.Errorf("reading the target's revision: %w", err)
	}
	need, have := c.from[0].revision, target[0].revision
	if have >= need {
		return nil
	}
	if c.Pad == "" {
		return fmt.Errorf("%w: it is at %d, and resource versions up to %d were handed out", ErrRevisionTooLow, have, need)
	}
	client := c.target[0].Client
	if err := padTo(ctx, client, c.Pad, need, c.Report); err != nil {
		return err
	}
	if _, err := client.Delete(ctx, c.Pad); err != nil {
		return fmt.Errorf("removing the key that was padded with: %w", err)
	}
	return nil
}

// copySection writes what the target does not have.
func (c *copying) copySection(ctx context.Context, i int) (SectionResult, error) {
	target, err := c.cutTarget(ctx)
	if err != nil {
		return SectionResult{}, err
	}
	copier := newCopier(c.from[i].Section, c.target[i])
	err = compare(ctx, c.from[i], target[i], c.counting("copying", i), func(d difference) error {
		if !d.missing() && !d.stale() {
			return fmt.Errorf("%w: %q", ErrTargetChanged, d.key())
		}
		return copier.add(ctx, d.from, d.to.GetModRevision())
	})
	if err == nil {
		err = copier.flush(ctx)
	}
	return SectionResult{Section: c.target[i], Copied: copier.copied, Expired: copier.expired}, err
}

// verify reads both sides and compares them. Keys whose lease is over may be missing.
func (c *copying) verify(ctx context.Context, result *Result) error {
	target, err := c.cutTarget(ctx)
	if err != nil {
		return fmt.Errorf("reading the target: %w", err)
	}
	for i, from := range c.from {
		both := c.counting("comparing", i)
		err := compare(ctx, from, target[i], both, func(d difference) error { return c.checkExpired(ctx, from, d) })
		if err != nil {
			return fmt.Errorf("comparing the %s: %w", from.Name, err)
		}
		source, copied := both.from.digest(), both.to.digest()
		if source.Sum != copied.Sum {
			return fmt.Errorf("comparing the %s: the digest of the source is %x, that of the target %x", from.Name, source.Sum, copied.Sum)
		}
		result.Sections[i].Digest = copied
	}
	return nil
}

// leaseSlack is how many seconds earlier a lease may end in the target, since times to
// live are told in whole seconds.
const leaseSlack = 2

// checkExpired fails unless a key is missing because its lease is over.
func (c *copying) checkExpired(ctx context.Context, from view, d difference) error {
	if d.missing() && d.from.Lease != 0 {
		left, err := from.timeLeft(ctx, d.from.Lease)
		if err != nil || left <= leaseSlack {
			return err
		}
	}
	return fmt.Errorf("%w: %q differs", ErrTargetChanged, d.key())
}

// compact makes everything up to the copy unreadable in the target.
func (c *copying) compact(ctx context.Context) (revision int64, err error) {
	target, err := c.target.cut(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the target's revision: %w", err)
	}
	done := map[*clientv3.Client]bool{}
	for _, v := range target {
		if done[v.Client] {
			continue
		}
		if err := compact(ctx, v.Client, v.revision); err != nil {
			return 0, err
		}
		done[v.Client] = true
	}
	return target[0].revision, nil
}
