// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/store/table"
)

// blockEntries is the maximum number of entries in a block, 10 KiB. The number of a namespace in it fits in a byte.
const blockEntries = 256

// blocksPrefix is the prefix of the keys of blocks.
const blocksPrefix = "blocks/"

// index has an entry for each Change, in blocks. A block is written again with each push until it is full, so that pushes write next to
// each other: rows ordered by object, user or commit would each be in another page of the file. To find some of 200 000 Changes, 8 MiB
// of entries are read.
type index struct {
	rows  *table.Table
	clock clock.PassiveClock

	mu sync.Mutex
	// key is that of the block that is not full yet, and entries are its entries. A process only adds to its own blocks: a late write
	// of a former leader replaces none of another.
	key     string
	entries []entry
	// opened is the number of blocks that this process has opened. process distinguishes it from others.
	opened, process uint32
	// recording are the first blocks of the entries whose Changes are being stored, by number of the call of add, and calls is that number.
	recording map[int]string
	calls     int
}

// add adds the entries of Changes. Their blocks are not closed until stored is called, which is once the Changes are stored: until then an
// entry without a Change is not one of a deleted Change.
func (i *index) add(ctx context.Context, changes []preparedChange) (stored func(), err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	key, entries := i.key, slices.Clip(i.entries)
	if key == "" {
		key = i.newKey()
	}
	first := key
	var rows []table.Row
	for c := range changes {
		for _, next := range entriesOf(&changes[c].Change) {
			if len(entries) >= blockEntries {
				rows = append(rows, table.Row{Key: key, Value: encodeBlock(entries)})
				key, entries = i.newKey(), nil
			}
			entries = append(entries, next)
		}
	}
	if len(entries) > 0 {
		rows = append(rows, table.Row{Key: key, Value: encodeBlock(entries)})
	}
	if err := i.rows.Put(ctx, rows...); err != nil {
		// The rows may have been written nevertheless. The next entries are in another block, so that none of these is lost.
		i.key, i.entries = "", nil
		return nil, fmt.Errorf("index Changes: %w", err)
	}
	i.key, i.entries = key, entries
	return i.record(first), nil
}

// record notes that the Changes of the entries in a block and in later ones are being stored. The caller holds the lock.
func (i *index) record(first string) (stored func()) {
	if i.recording == nil {
		i.recording = map[int]string{}
	}
	i.calls++
	call := i.calls
	i.recording[call] = first
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.recording, call)
	}
}

// reset makes the next call of add open a block.
func (i *index) reset() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.key, i.entries = "", nil
}

// newKey returns the key of a new block, which sorts before those of older ones. The caller holds the lock.
func (i *index) newKey() string {
	if i.process == 0 {
		i.process = rand.Uint32() //nolint:gosec // it distinguishes processes and is not secret
	}
	i.opened++
	return fmt.Sprintf("%s%s-%08x-%08x", blocksPrefix, nameAt(i.clock.Now()), math.MaxUint32-i.opened, i.process)
}

// closed returns a function that reports whether this process does not add to the block with a key any more, and has stored the Changes of its
// entries. Blocks that it may still open sort before the one that is open now.
func (i *index) closed() func(key string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	open := i.key
	if open == "" {
		open = blocksPrefix + nameAt(i.clock.Now()) + "~" // It sorts after all keys of this time.
	}
	for _, first := range i.recording {
		open = max(open, first)
	}
	return func(key string) bool { return key > open }
}

// block is a stored block. Its entries are the newest first, as far as known: those of a push have been added together. There are none in
// a block that cannot be read.
type block struct {
	key string
	// opened is when the block was opened.
	opened  time.Time
	entries []entry
}

// blocks reads all blocks, newest first.
func blocks(ctx context.Context, rows *table.Table) iter.Seq2[block, error] {
	return func(yield func(block, error) bool) {
		for row, err := range rows.ScanEach(ctx, blocksPrefix, "") {
			var unopened *table.UnopenedError
			if err != nil && !errors.As(err, &unopened) {
				yield(block{}, fmt.Errorf("read the index of Changes: %w", err))
				return
			}
			next := block{key: row.Key}
			next.opened, _ = timeOf(strings.TrimPrefix(row.Key, blocksPrefix))
			if err == nil {
				next.entries, err = decodeBlock(row.Value)
			}
			if err != nil {
				logUnreadable(ctx, fmt.Errorf("row %s: %w", row.Key, err))
			}
			slices.Reverse(next.entries)
			if !yield(next, nil) {
				return
			}
		}
	}
}

// page is a part of what find returns: what comes after a position, at most a number unless it is 0.
type page struct {
	after position
	most  int
}

// find returns the positions of the Changes whose entries match, in order, each once. more is true if there are more than in the page.
// Blocks are in the order of the times at which they were opened, which is not that of the times of their Changes: another leader's clock
// may have differed, and pushes may have been delayed. So it reads all blocks.
func find(ctx context.Context, rows *table.Table, part page, matches func(*entry) bool) (found []position, more bool, err error) {
	for block, err := range blocks(ctx, rows) {
		if err != nil {
			return nil, false, err
		}
		for i := range block.entries {
			if !matches(&block.entries[i]) {
				continue
			}
			if at := block.entries[i].position(); at.compare(part.after) > 0 {
				found = append(found, at)
			}
		}
		if part.most > 0 && len(found) > 2*part.most+blockEntries {
			found, more = part.cut(found, more)
		}
	}
	found, more = part.cut(found, more)
	return found, more, nil
}

// cut sorts positions and returns the first ones. more is whether some were cut before, or are now.
func (p page) cut(found []position, more bool) ([]position, bool) {
	slices.SortFunc(found, position.compare)
	found = slices.Compact(found)
	if p.most > 0 && len(found) > p.most {
		return found[:p.most], true
	}
	return found, more
}

// commitMatcher returns a function that reports whether the commit of an entry may begin with some hexadecimal digits.
func commitMatcher(digits string) func(*entry) bool {
	digits = digits[:min(len(digits), 2*commitBytes)]
	return func(e *entry) bool { return hex.EncodeToString(e.commit[:])[:len(digits)] == digits }
}
