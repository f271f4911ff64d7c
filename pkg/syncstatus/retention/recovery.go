// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"bytes"
	"fmt"
)

// chunk is the size of the parts in which a file is searched for the end of a line.
const chunk = 64 << 10

// recoverLast truncates an incomplete line at the end of the newest file, and reads the records of the last batch.
//
// An incomplete line was never synced, so its record is still in the API. Complete lines may not be on disk either, although they can be
// read, if the process or the disk failed before they were synced. So they are written again.
func (a *fileArchive) recoverLast() error {
	end, err := a.endOfLines()
	if err != nil {
		return fmt.Errorf("looking for the last line: %w", err)
	}
	if err := a.file.Truncate(end); err != nil {
		return fmt.Errorf("truncating an incomplete line: %w", err)
	}
	a.size = end
	tail, offset, err := a.readTail()
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
			a.lastBatch.Insert(record)
		}
	}
	return nil
}

// endOfLines returns the offset of the end of the last complete line.
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

// readTail reads the end of the file in the maximum size of a batch, and returns its offset. Its first line may be incomplete.
func (a *fileArchive) readTail() (tail []byte, offset int64, err error) {
	offset = max(0, a.size-batchBytes)
	tail = make([]byte, a.size-offset)
	_, err = a.file.ReadAt(tail, offset)
	return tail, offset, err
}
