// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	storetable "github.com/configbutler/slipstream/pkg/store/table"
)

const (
	// tableName is the name of the table of the work store that has the last batch for Git.
	tableName = "archive"
	lastBatch = "last"
	// gitBatchBytes is the maximum size of a batch. A single record may be larger, and still has to fit in a row of the work store.
	gitBatchBytes = 512 << 10
	// gitTimeout is the timeout of Git for one batch. It is longer than the timeout of a request to the remote.
	gitTimeout = 5 * time.Minute
)

// Git writes files to GitDestinations.
type Git interface {
	// Check returns why a file cannot be written to a destination.
	Check(ctx context.Context, destination types.NamespacedName) error
	// Write writes a file. It returns nil once the branch on the remote has it. After an error the remote may have the file as well. Then
	// writing it again changes nothing.
	Write(ctx context.Context, destination types.NamespacedName, path string, content []byte, subject string) error
}

// gitArchive is an archive in a folder of a GitDestination, with one file for each batch. A batch of which it is unknown whether the remote
// has it is written again unchanged, so the remote has it once.
type gitArchive struct {
	git         Git
	table       *storetable.Table
	destination types.NamespacedName
	last        gitBatch
	records     sets.Set[version]
}

// gitBatch is a batch in the work store. It is stored before it is written to Git, until the next batch replaces it.
type gitBatch struct {
	Destination types.NamespacedName `json:"destination"`
	Path        string               `json:"path"`
	Records     int                  `json:"records"`
	// Accepted is true once the remote has the file.
	Accepted bool `json:"accepted,omitempty"`
	// text is the content of the file. It is stored after the JSON of the other fields.
	text []byte
}

// openGit checks whether files can be written to the destination, and reads the last batch.
func (s *Sweeper) openGit(ctx context.Context, ref v1alpha1.NamespacedObjectReference) (archive, error) {
	a := &gitArchive{
		git: s.config.Git, table: s.process.Store.Table(tableName),
		destination: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, records: sets.New[version](),
	}
	checked, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	if err := a.git.Check(checked, a.destination); err != nil {
		return nil, err
	}
	value, found, err := a.table.Get(ctx, lastBatch)
	if err != nil || !found {
		return a, err
	}
	last, err := decodeBatch(value)
	if err != nil || last.Destination != a.destination {
		return a, err
	}
	a.last = last
	for text := range bytes.Lines(last.text) {
		if record, ok := readVersion(text); ok {
			a.records.Insert(record)
		}
	}
	return a, nil
}

func (a *gitArchive) contains(record version) bool { return a.records.Has(record) }

func (a *gitArchive) confirm(ctx context.Context) (archived int, err error) {
	if a.last.Accepted {
		return 0, nil
	}
	if err := a.write(ctx); err != nil {
		return 0, err
	}
	return a.last.Records, nil
}

func (a *gitArchive) append(ctx context.Context, now time.Time, batch []line) error {
	text := encode(batch)
	a.last = gitBatch{Destination: a.destination, Path: pathOf(now, text), Records: len(batch), text: text}
	if err := a.store(ctx); err != nil {
		return err
	}
	return a.write(ctx)
}

// write writes the last batch to Git, and records that the remote has it.
func (a *gitArchive) write(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	subject := fmt.Sprintf("[ARCHIVE] SyncStatuses whose time is over: %d", a.last.Records)
	if err := a.git.Write(bounded, a.destination, a.last.Path, a.last.text, subject); err != nil {
		return err
	}
	a.last.Accepted = true
	return a.store(ctx)
}

// store writes the last batch to the work store.
func (a *gitArchive) store(ctx context.Context) error {
	head, err := json.Marshal(a.last)
	if err != nil {
		return fmt.Errorf("encoding a batch: %w", err)
	}
	value := append(append(head, '\n'), a.last.text...)
	if err := a.table.Put(ctx, storetable.Row{Key: lastBatch, Value: value}); err != nil {
		return fmt.Errorf("storing a batch for Git: %w", err)
	}
	return nil
}

func decodeBatch(value []byte) (gitBatch, error) {
	var batch gitBatch
	head, text, _ := bytes.Cut(value, []byte("\n"))
	if err := json.Unmarshal(head, &batch); err != nil {
		return gitBatch{}, fmt.Errorf("decoding the last batch of the archive: %w", err)
	}
	batch.text = text
	return batch, nil
}

func (*gitArchive) maxBatchBytes() int { return gitBatchBytes }

func (*gitArchive) close() error { return nil }

// pathOf returns the path of a batch. Files sort by time, and their names are unique.
func pathOf(now time.Time, text []byte) string {
	now = now.UTC()
	sum := sha256.Sum256(text)
	return fmt.Sprintf("archive/%s/syncstatuses-%s-%x.jsonl", now.Format("2006/01"), now.Format("20060102T150405Z"), sum[:6])
}
