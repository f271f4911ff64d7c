// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package journal answers how changes of a file become durable with one sync,
// long before the file itself is synced.
//
// A journal is two files beside the one that it protects, PATH-journal-a and
// PATH-journal-b. Each begins with room for one checkpoint; entries follow.
//
//	0      checkpoint: which state of the protected file is whole on disk, and
//	       which entries have to be made to it again
//	4096   entries, each at a multiple of 512 bytes
//
// # Entries
//
// An entry is appended and synced before the change that it describes is made.
// Entries are numbered without gaps. An entry's checksum covers its number, the
// generation that it was written in, and a random number of the journal, so that
// bytes which a recycled file still holds of an earlier generation, or which came
// from outside as the content of an entry, are never taken for an entry.
//
// # Generations
//
// Generation g is written to file g mod 2. [Journal.Turn] begins the next one, which it
// can when the last checkpoint has made the one before the current obsolete. So
// entries go on while the protected file is synced for the next checkpoint, and
// files are recycled: they are filled with zeros once, and appending within them
// changes no metadata of the file system, which halves the cost of a sync.
//
// # Checkpoints
//
// Checkpoint n is written to file n mod 2, so that a checkpoint that is torn
// leaves the one before it, which is valid until its successor is. Entries carry the
// number of the checkpoint that was valid when they were written: a journal whose
// last checkpoint went bad later is told from one whose next was never finished.
//
// # Reading
//
// [Read] takes entries in order until one is not readable. If a readable one with
// a higher number follows, an entry that had been synced went bad, and nothing is
// replayed. If none follows, it is the end: the entry that was being written when
// the process or the power went, whose writer got no answer.
package journal
