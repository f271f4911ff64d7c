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
	// ErrEmptySource is returned if there are no keys to copy, which probably means a wrong prefix.
	ErrEmptySource = errors.New("the source has no data")

	// ErrTargetNotEmpty is returned if the target holds keys that are not a part of the source.
	ErrTargetNotEmpty = errors.New("the target is not empty")

	// ErrRevisionTooLow is returned if the target would hand out revisions that the source has handed out already.
	ErrRevisionTooLow = errors.New("the target's revision is lower than the source's")

	// ErrSourceChanged is returned if the source was written to during the copy.
	ErrSourceChanged = errors.New("the source changed while it was copied")

	// ErrTargetChanged is returned if the target was written to during the copy, or if the copy differs.
	ErrTargetChanged = errors.New("the target changed while it was written")
)

// Options configure a migration.
type Options struct {
	// Replace removes the content of the target first, if it is not a part of the source.
	Replace bool
	// Pad is the key that is written repeatedly until the target's revision is high enough. If empty, a target with a
	// lower revision is rejected.
	Pad string
	// Beside are additional files that are installed together with the store files: content by name.
	Beside map[string][]byte
	// Report reports the progress; nil for none.
	Report *Reporter
}

// Result is the result of a migration, by section.
type Result struct {
	Sections []SectionResult
	// Revision is the revision of the target, at which it was compacted.
	Revision int64
}

// SectionResult is the result for one section.
type SectionResult struct {
	Section
	// Digest is the digest of both sides.
	Digest
	// Copied is the number of keys that this run wrote, Expired that of keys whose lease had expired.
	Copied, Expired int64
}

// copying is a migration in progress.
type copying struct {
	Options
	from   []view
	target Store
}

// Copy copies the current content of the source to the target. It returns one of the errors above, or an error of the
// stores; it can be run again then.
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

// checkNotEmpty returns an error for a source without keys.
func checkNotEmpty(from []view) error {
	keys, prefixes := int64(0), ""
	for _, v := range from {
		keys += v.keys
		prefixes += " " + v.Prefix
	}
	if keys == 0 {
		return fmt.Errorf("%w below%s: check the prefix", ErrEmptySource, prefixes)
	}
	return nil
}

// prepare checks that the target may be written to, and raises its revision.
func (c *copying) prepare(ctx context.Context) error {
	for i, from := range c.from {
		foreign, err := c.findForeign(ctx, i)
		if err != nil {
			return fmt.Errorf("reading the target's %s: %w", from.Name, err)
		}
		if foreign == nil {
			continue
		}
		if !c.Replace {
			return fmt.Errorf("%w: %q differs from the source", ErrTargetNotEmpty, foreign)
		}
		if err := c.empty(ctx, i); err != nil {
			return fmt.Errorf("removing the target's %s: %w", from.Name, err)
		}
	}
	return c.raise(ctx)
}

// cutTarget returns views of the target. All keys of the copy have revisions above the source's.
func (c *copying) cutTarget(ctx context.Context) ([]view, error) {
	target, err := c.target.cut(ctx)
	for i := range target {
		target[i].floor = c.from[0].revision
	}
	return target, err
}

// errFound stops a comparison.
var errFound = errors.New("found")

// findForeign returns a key of the target that is not part of a copy, nil if there is none.
func (c *copying) findForeign(ctx context.Context, i int) (foreign []byte, err error) {
	target, err := c.cutTarget(ctx)
	if err != nil || target[i].keys == 0 {
		return nil, err
	}
	err = compare(ctx, c.from[i], target[i], c.counting("checking the target", i), func(d difference) error {
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

// counting returns sides that report the progress for each key of a section.
func (c *copying) counting(what string, i int) *sides {
	done := int64(0)
	return newSides(func() {
		done++
		c.Report.step(what+": "+c.from[i].Name, done, c.from[i].keys)
	})
}

// empty removes the content of a section of the target, in batches.
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

// raise raises the target's revision above the source's, or returns an error.
func (c *copying) raise(ctx context.Context) error {
	target, err := c.target.cut(ctx)
	if err != nil {
		return fmt.Errorf("reading the target's revision: %w", err)
	}
	need, have := c.from[0].revision, target[0].revision
	client := c.target[0].Client
	switch {
	case have < need && c.Pad == "":
		return fmt.Errorf("%w: it is at %d, and resource versions up to %d were handed out", ErrRevisionTooLow, have, need)
	case have < need:
		if err := padTo(ctx, client, c.Pad, need, c.Report); err != nil {
			return err
		}
	case c.Pad == "":
		return nil
	}
	// An interrupted migration may have left the key, also if the revision is high enough now.
	if _, err := client.Delete(ctx, c.Pad); err != nil {
		return fmt.Errorf("deleting the key that was written to raise the revision: %w", err)
	}
	return nil
}

// copySection writes the keys of a section that the target lacks.
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

// verify reads and compares both sides. Keys whose lease has expired may be missing.
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

// leaseSlack is how many seconds earlier a lease may expire in the target, since times to live are whole seconds.
const leaseSlack = 2

// checkExpired returns an error unless a key is missing because its lease has expired.
func (c *copying) checkExpired(ctx context.Context, from view, d difference) error {
	if d.missing() && d.from.Lease != 0 {
		left, err := from.timeLeft(ctx, d.from.Lease)
		if err != nil || left <= leaseSlack {
			return err
		}
	}
	return fmt.Errorf("%w: %q differs", ErrTargetChanged, d.key())
}

// compact compacts the target up to the copy.
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
