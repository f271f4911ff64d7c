// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/configbutler/slipstream/pkg/store/table"
)

// Limits bound the Changes that are kept. What is older is in Git.
type Limits struct {
	// Age is how long a Change is kept, measured from the time of the change.
	Age time.Duration
	// Total is the maximum number of Changes, PerObject that of one object. The oldest are deleted first.
	Total, PerObject int
}

// intervals is the number of intervals in which Changes are counted at once: 32 KiB of counters.
const intervals = 4096

// pruning deletes what exceeds the limits. Its memory grows with the number of objects, and not of Changes.
type pruning struct {
	history *History
	limits  Limits
	now     time.Time
}

// prune deletes what exceeds the limits.
func (h *History) prune(ctx context.Context, limits Limits, now time.Time) error {
	p := pruning{history: h, limits: limits, now: now}
	return errors.Join(p.pushes(ctx), p.changes(ctx), p.ofObjects(ctx))
}

// pushes deletes the Changes of pushes that were neither accepted nor rejected.
func (p *pruning) pushes(ctx context.Context) error {
	oldest := p.now.Add(-preparedAge)
	return p.deleteEach(ctx, p.history.config.Rows, func(yield func(string, error) bool) {
		for row, err := range p.history.config.Rows.Scan(ctx, pushesPrefix) {
			if err != nil {
				yield("", err)
				return
			}
			if push, err := parsePush(row); err == nil && !push.at.Before(oldest) {
				continue
			}
			if !yield(row.Key, nil) {
				return
			}
		}
	})
}

// changes deletes Changes that are too old or too many, and the blocks that have only older ones.
func (p *pruning) changes(ctx context.Context) error {
	oldest, err := p.oldest(ctx)
	if err != nil {
		return err
	}
	changes := p.history.config.Changes
	if err := p.deleteEach(ctx, changes, expired(changes.Keys(ctx, ""), oldest)); err != nil {
		return err
	}
	return p.deleteEach(ctx, p.history.config.Rows, p.expiredBlocks(ctx, oldest))
}

// expiredBlocks returns the keys of the blocks that were opened before a time and have no younger Changes.
func (p *pruning) expiredBlocks(ctx context.Context, oldest time.Time) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		closed := p.history.index.closed()
		for block, err := range blocks(ctx, p.history.config.Rows) {
			if err != nil {
				yield("", err)
				return
			}
			young := func(e entry) bool { return !e.time().Before(oldest) }
			if !closed(block.key) || !block.opened.Before(oldest) || slices.ContainsFunc(block.entries, young) {
				continue
			}
			if !yield(block.key, nil) {
				return
			}
		}
	}
}

// ofObjects deletes the Changes of each object that are too many.
func (p *pruning) ofObjects(ctx context.Context) error {
	crowded, err := p.crowded(ctx)
	if err != nil || len(crowded) == 0 {
		return err
	}
	found, _, err := find(ctx, p.history.config.Rows, page{}, func(e *entry) bool { return crowded[e.hashes()] > p.limits.PerObject })
	if err != nil {
		return err
	}
	excess := map[string]bool{}
	counts := map[Object]int{}
	for _, at := range found { // the newest first
		change, exists, err := p.history.read(ctx, at.key())
		if err != nil {
			return err
		}
		if object := objectOf(&change.Spec); exists {
			if counts[object]++; counts[object] > p.limits.PerObject {
				excess[at.key()] = true
			}
		}
	}
	if err := p.deleteEach(ctx, p.history.config.Changes, keysOf(excess)); err != nil {
		return err
	}
	return p.shorten(ctx, crowded)
}

// crowded returns the objects with more entries than the limit, with the number of their entries. A Change has an entry for each commit.
func (p *pruning) crowded(ctx context.Context) (map[objectHashes]int, error) {
	counts := map[objectHashes]int{}
	for block, err := range blocks(ctx, p.history.config.Rows) {
		if err != nil {
			return nil, err
		}
		for i := range block.entries {
			counts[block.entries[i].hashes()]++
		}
	}
	maps.DeleteFunc(counts, func(_ objectHashes, count int) bool { return count <= p.limits.PerObject })
	return counts, nil
}

// shorten removes the entries of some objects whose Changes do not exist, so that they are not counted again. Blocks to which this process
// may add are left.
func (p *pruning) shorten(ctx context.Context, objects map[objectHashes]int) error {
	closed := p.history.index.closed()
	for block, err := range blocks(ctx, p.history.config.Rows) {
		if err != nil {
			return err
		}
		if !closed(block.key) {
			continue
		}
		rest := make([]entry, 0, len(block.entries))
		for _, e := range slices.Backward(block.entries) {
			exists := true
			if objects[e.hashes()] > 0 {
				if _, exists, err = p.history.config.Changes.Get(ctx, e.position().key()); err != nil {
					return fmt.Errorf("read a Change: %w", err)
				}
			}
			if exists {
				rest = append(rest, e)
			}
		}
		if len(rest) == len(block.entries) {
			continue
		}
		if err := p.history.config.Rows.Put(ctx, table.Row{Key: block.key, Value: encodeBlock(rest)}); err != nil {
			return fmt.Errorf("shorten the index of Changes: %w", err)
		}
	}
	return nil
}

// keysOf returns the keys of a set.
func keysOf(set map[string]bool) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for key := range set {
			if !yield(key, nil) {
				return
			}
		}
	}
}

// oldest returns the time before which Changes are deleted because of their age or their number. To find it without holding the times of
// all, it counts them in intervals, and then those in the interval in which the maximum is reached.
func (p *pruning) oldest(ctx context.Context) (time.Time, error) {
	expiry := p.now.Add(-p.limits.Age)
	total, err := p.history.config.Changes.Count(ctx, "")
	if err != nil || total <= int64(p.limits.Total) {
		return expiry, err
	}
	end := p.now
	for width, kept := p.limits.Age/intervals, 0; ; width /= intervals {
		width = max(width, time.Millisecond)
		counts, err := p.count(ctx, end, width)
		if err != nil {
			return end, err
		}
		for i := 0; i < len(counts) && kept+counts[i] <= p.limits.Total; i++ {
			kept += counts[i]
			end = end.Add(-width)
		}
		if width == time.Millisecond {
			end = end.Add(width) // One from exactly end has not been counted.
			if end.Before(expiry) {
				end = expiry
			}
			return end, nil
		}
	}
}

// count returns how many Changes are in each of the intervals of a width that precede end.
func (p *pruning) count(ctx context.Context, end time.Time, width time.Duration) (counts [intervals]int, err error) {
	for key, err := range p.history.config.Changes.Keys(ctx, "") {
		if err != nil {
			return counts, err
		}
		if at, ok := timeOfKey(key); ok && !at.After(end) {
			if i := end.Sub(at) / width; i < intervals {
				counts[i]++
			}
		}
	}
	return counts, nil
}

// expired returns those of the keys of some Changes whose time is before another.
func expired(keys iter.Seq2[string, error], oldest time.Time) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for key, err := range keys {
			if err != nil {
				yield("", err)
				return
			}
			if at, ok := timeOfKey(key); ok && at.Before(oldest) && !yield(key, nil) {
				return
			}
		}
	}
}

// timeOfKey returns the time in the key of a Change.
func timeOfKey(key string) (time.Time, bool) { return timeOf(key[strings.LastIndex(key, "/")+1:]) }

// deleteEach deletes rows, some at a time, so that other writers are not blocked for long.
func (p *pruning) deleteEach(ctx context.Context, from *table.Table, keys iter.Seq2[string, error]) error {
	for chunk, err := range chunks(keys) {
		if err != nil {
			return err
		}
		if err := p.delete(ctx, from, chunk); err != nil {
			return err
		}
	}
	return nil
}

func (p *pruning) delete(ctx context.Context, from *table.Table, keys []string) error {
	if err := from.Delete(ctx, keys...); err != nil {
		return fmt.Errorf("delete old Changes: %w", err)
	}
	return nil
}

// chunks returns keys in slices of as many as one transaction deletes. A slice is valid until the next one.
func chunks(keys iter.Seq2[string, error]) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		chunk := make([]string, 0, table.MaxAtomicRows)
		for key, err := range keys {
			if err != nil {
				yield(nil, fmt.Errorf("list old Changes: %w", err))
				return
			}
			if chunk = append(chunk, key); len(chunk) < table.MaxAtomicRows {
				continue
			}
			if !yield(chunk, nil) {
				return
			}
			chunk = chunk[:0]
		}
		if len(chunk) > 0 {
			yield(chunk, nil)
		}
	}
}
