// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"bytes"
	"fmt"
)

// chunk is how much is looked through at once for the end of a line.
const chunk = 64 << 10

// resume makes the newest file end with a whole line, and finds out which records the last batch has.
//
// A line that is not whole was never on disk for certain, so its record is still there. Whole lines may not be on disk
// either, although they can be read: the process may have ended, or the disk may have failed, before they were. So they
// are written again.
func (a *fileArchive) resume() error {
	end, err := a.endOfLines()
	if err != nil {
		return fmt.Errorf("looking for the last line: %w", err)
	}
	if err := a.file.Truncate(end); err != nil {
		return fmt.Errorf("cutting off a line that is not whole: %w", err)
	}
	a.size = end
	tail, offset, err := a.lastBatch()
	if err != nil {
		return fmt.Errorf("reading the last lines: %w", err)
	}
	if _, err := a.file.WriteAt(tail, offset); err != nil {
		return fmt.Errorf("writing the last lines again: %w", err)
	}
	if err := a.file.Sync(); err != nil {
		return fmt.Errorf("writing the last lines to disk: %w", err)
	}
	for text := range bytes.Lines(tail) {
		if record, ok := readVersion(text); ok {
			a.last.Insert(record)
		}
	}
	return nil
}

// endOfLines is where the last whole line ends.
func (a *fileArchive) endOfLines() (int64, error) {
	info, err := a.file.Stat()
	if err != nil {
		return 0, err
	}
	buffer := make([]byte, chunk)
	for end := info.Size(); end > 0; {
		start := max(0, end-chunk)
		part := buffer[:end-start]
		if _, err := a.file.ReadAt(part, start); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return start + int64(i) + 1, nil
		}
		end = start
	}
	return 0, nil
}

// lastBatch reads as much of the end as a batch can have, the first line of which need not be whole, and says where it
// begins.
func (a *fileArchive) lastBatch() (tail []byte, offset int64, err error) {
	offset = max(0, a.size-batchBytes)
	tail = make([]byte, a.size-offset)
	_, err = a.file.ReadAt(tail, offset)
	return tail, offset, err
}
