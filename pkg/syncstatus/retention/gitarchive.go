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
	// TableName is the table of the working state that has the batch which was last written to Git.
	TableName = "archive"
	lastBatch = "last"
	// gitBatchBytes leaves a row of the working state room for what a record may have beyond it.
	gitBatchBytes = 512 << 10
	// gitPatience is how long Git may take for one batch, which is longer than the remote may take for a request.
	gitPatience = 5 * time.Minute
)

// Git writes files to GitDestinations.
type Git interface {
	// Check says why a file would not be taken for a destination now.
	Check(ctx context.Context, destination types.NamespacedName) error
	// Write writes a file. It returns nil once the branch on the remote has it. After an error the file may be there all the
	// same; writing it again changes nothing then.
	Write(ctx context.Context, destination types.NamespacedName, path string, content []byte, subject string) error
}

// gitArchive is the folder of a GitDestination, in which each batch is a file of its own. What has been handed to Git and
// may or may not have landed is handed over again as it was, so that it lands once.
type gitArchive struct {
	git         Git
	table       *storetable.Table
	destination types.NamespacedName
	last        gitBatch
	records     sets.Set[version]
}

// gitBatch is a batch as the working state has it, from before Git is asked to write it until there is another.
type gitBatch struct {
	Destination types.NamespacedName `json:"destination"`
	Path        string               `json:"path"`
	Records     int                  `json:"records"`
	// Accepted says that the remote has the file.
	Accepted bool `json:"accepted,omitempty"`
	// text is kept beside the rest.
	text []byte
}

// openGit asks Git whether the destination would take a file, and reads what was last written there.
func (s *Sweeper) openGit(ctx context.Context, ref v1alpha1.NamespacedObjectReference) (archive, error) {
	a := &gitArchive{
		git: s.Git, table: s.Table, destination: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, records: sets.New[version](),
	}
	checked, cancel := context.WithTimeout(ctx, gitPatience)
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

func (a *gitArchive) holds(record version) bool { return a.records.Has(record) }

func (a *gitArchive) finish(ctx context.Context) (archived int, err error) {
	if a.last.Accepted {
		return 0, nil
	}
	if err := a.write(ctx); err != nil {
		return 0, err
	}
	return a.last.Records, nil
}

func (a *gitArchive) append(ctx context.Context, now time.Time, batch []line) error {
	text := textOf(batch)
	a.last = gitBatch{Destination: a.destination, Path: pathOf(now, text), Records: len(batch), text: text}
	if err := a.keep(ctx); err != nil {
		return err
	}
	return a.write(ctx)
}

// write lets Git write the last batch, and notes that it has.
func (a *gitArchive) write(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, gitPatience)
	defer cancel()
	subject := fmt.Sprintf("[ARCHIVE] SyncStatuses whose time is over: %d", a.last.Records)
	if err := a.git.Write(bounded, a.destination, a.last.Path, a.last.text, subject); err != nil {
		return err
	}
	a.last.Accepted = true
	return a.keep(ctx)
}

// keep writes the last batch to the working state.
func (a *gitArchive) keep(ctx context.Context) error {
	head, err := json.Marshal(a.last)
	if err != nil {
		return fmt.Errorf("encoding a batch: %w", err)
	}
	value := append(append(head, '\n'), a.last.text...)
	if err := a.table.Put(ctx, storetable.Row{Key: lastBatch, Value: value}); err != nil {
		return fmt.Errorf("keeping a batch until Git has it: %w", err)
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

func (*gitArchive) room() int { return gitBatchBytes }

func (*gitArchive) close() error { return nil }

// pathOf is where a batch goes: files sort by time, and no two have the same name.
func pathOf(now time.Time, text []byte) string {
	now = now.UTC()
	sum := sha256.Sum256(text)
	return fmt.Sprintf("archive/%s/syncstatuses-%s-%x.jsonl", now.Format("2006/01"), now.Format("20060102T150405Z"), sum[:6])
}
