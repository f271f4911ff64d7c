// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// Record is the newest pull request of a destination, and the last one that was declined.
type Record struct {
	// Place identifies the repository, the branch, its base and the folder, separated by blanks. A record of another place is not used.
	Place string `json:"place"`
	// Left are the branches of earlier places in the repository whose pull requests are to be closed.
	Left []Branches `json:"left,omitempty"`
	// Since is the commit of the destination's branch at which what is proposed begins: neither it nor what is before it is. Zero if
	// there is none.
	Since gitrepo.Hash `json:"since"`
	// Anew is set if the branch may have commits of another place, such as an earlier folder, so that it has to start anew.
	Anew bool `json:"anew,omitempty"`
	// Own are the commits that the server has pushed to the destination's branch, or was about to. Others may push there, too.
	Own Hashes `json:"own,omitempty"`
	// Published is the tip of the branch that the open pull request was last brought to, followed by what rebases have made of it since.
	Published Hashes `json:"published,omitempty"`
	// Creating is when the destination began to open a pull request whose number is not known yet; zero if it does not.
	Creating time.Time `json:"creating,omitzero"`
	// Earlier is the highest number of the pull requests of earlier places, which are not this one; 0 if there is none.
	Earlier int64 `json:"earlier,omitempty"`
	// Closing is set before the server closes the pull request: then it was not declined.
	Closing bool `json:"closing,omitempty"`

	// Host identifies the repository at the host that has the pull request; empty in records of earlier versions.
	Host string `json:"host,omitempty"`
	// Number is that of the newest pull request; 0 if there was none.
	Number int64                  `json:"number,omitempty"`
	URL    string                 `json:"url,omitempty"`
	State  v1alpha1.ProposalState `json:"state,omitempty"`
	// Changes is the number of files at its end.
	Changes int64     `json:"changes,omitempty"`
	Opened  time.Time `json:"opened,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	EndedBy string    `json:"endedBy,omitempty"`

	// Declined is the last pull request that was closed without a merge; nil if there was none, or nothing of it is withheld any more.
	Declined *Ending `json:"declined,omitempty"`
}

// Ending is who closed a pull request, and when.
type Ending struct {
	Number int64     `json:"number"`
	By     string    `json:"by,omitempty"`
	Time   time.Time `json:"time"`
}

// Branches are the branch and the base of a pull request.
type Branches struct {
	Head string `json:"head"`
	Base string `json:"base"`
}

// leave returns the record of a destination that moves to another place. Of another repository nothing is kept: its numbers are others.
func (r *Record) leave(place string) Record {
	next := Record{Place: place}
	was, now := strings.Fields(r.Place), strings.Fields(place)
	if len(was) < 3 || was[0] != now[0] {
		return next
	}
	next.Left, next.Earlier = r.Left, max(r.Number, r.Earlier)
	if r.Open() || !r.Creating.IsZero() {
		next.Left = append(next.Left, Branches{Head: was[1], Base: was[2]})
	}
	return next
}

// Open reports whether the newest pull request is open.
func (r *Record) Open() bool { return r.State == v1alpha1.ProposalOpen }

// Hashes are commits. JSON has them as one text, because there can be thousands.
type Hashes []gitrepo.Hash

// MarshalJSON writes the bytes of all hashes.
func (h Hashes) MarshalJSON() ([]byte, error) {
	var all []byte
	for _, hash := range h {
		all = append(all, hash[:]...)
	}
	return json.Marshal(all)
}

// UnmarshalJSON reads what MarshalJSON has written.
func (h *Hashes) UnmarshalJSON(data []byte) error {
	var all []byte
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	*h = nil
	for hash := range slices.Chunk(all, len(gitrepo.Hash{})) {
		*h = append(*h, gitrepo.Hash(hash))
	}
	return nil
}

// Declined are files of a declined pull request by their path in the repository, with their blob; zero for a file that it removed.
type Declined map[string]gitrepo.Hash

// MarshalJSON writes the hashes in hexadecimal, in a third of the size of an array of numbers.
func (d Declined) MarshalJSON() ([]byte, error) {
	texts := make(map[string]string, len(d))
	for path, hash := range d {
		texts[path] = hash.String()
	}
	return json.Marshal(texts)
}

// UnmarshalJSON adds what MarshalJSON has written.
func (d *Declined) UnmarshalJSON(data []byte) error {
	var texts map[string]string
	if err := json.Unmarshal(data, &texts); err != nil {
		return err
	}
	if *d == nil {
		*d = Declined{}
	}
	for path, text := range texts {
		(*d)[path] = gitrepo.ParseHash(text)
	}
	return nil
}

// Log stores the Records and Declined of destinations.
type Log struct {
	Table *table.Table
}

// The rows of a destination: its record, and its declined files, which are in one row for each first byte of the SHA-256 of their path, so
// that a file that changes costs one small row.
const (
	recordRow   = "record"
	declinedRow = "declined/"
)

func key(uid types.UID, row string) string { return string(uid) + "/" + row }

// Read returns what is stored of a destination. It returns an empty Record for the place, and no files, if there is nothing. What is stored
// of another place is deleted, but for Left and Earlier; then Anew is set.
func (l *Log) Read(ctx context.Context, uid types.UID, place string) (Record, Declined, error) {
	record, declined := Record{}, Declined{}
	var keys []string
	for row, err := range l.Table.Scan(ctx, key(uid, "")) {
		if err != nil {
			return Record{}, nil, fmt.Errorf("read the pull request of the destination: %w", err)
		}
		keys = append(keys, row.Key)
		target := any(&declined)
		if row.Key == key(uid, recordRow) {
			target = &record
		}
		if err := json.Unmarshal(row.Value, target); err != nil {
			return Record{}, nil, fmt.Errorf("decode the pull request of the destination: %w", err)
		}
	}
	if record.Place == place {
		return record, declined, nil
	}
	next := record.leave(place)
	if next.Anew = len(keys) > 0; next.Anew {
		keys = slices.DeleteFunc(keys, func(k string) bool { return k == key(uid, recordRow) })
		if err := l.Table.Delete(ctx, keys...); err != nil {
			return Record{}, nil, fmt.Errorf("delete the declined files of another place: %w", err)
		}
		if err := l.Write(ctx, uid, next); err != nil {
			return Record{}, nil, err
		}
	}
	return next, Declined{}, nil
}

// Write stores the record of a destination.
func (l *Log) Write(ctx context.Context, uid types.UID, record Record) error {
	value, err := json.Marshal(record)
	if err == nil {
		err = l.Table.Put(ctx, table.Row{Key: key(uid, recordRow), Value: value})
	}
	if err != nil {
		return fmt.Errorf("store the pull request of the destination: %w", err)
	}
	return nil
}

// WriteDeclined stores the declined files of a destination where they differ from before.
func (l *Log) WriteDeclined(ctx context.Context, uid types.UID, before, after Declined) error {
	old, now := before.split(), after.split()
	var rows []table.Row
	var dropped []string
	for name := range old {
		if _, kept := now[name]; !kept {
			dropped = append(dropped, key(uid, name))
		}
	}
	for name, files := range now {
		if maps.Equal(files, old[name]) {
			continue
		}
		value, err := json.Marshal(files)
		if err != nil {
			return fmt.Errorf("encode the declined files: %w", err)
		}
		rows = append(rows, table.Row{Key: key(uid, name), Value: value})
	}
	if err := l.Table.Put(ctx, rows...); err != nil {
		return fmt.Errorf("store the declined files: %w", err)
	}
	if err := l.Table.Delete(ctx, dropped...); err != nil {
		return fmt.Errorf("delete the declined files: %w", err)
	}
	return nil
}

// split returns the files by row.
func (d Declined) split() map[string]Declined {
	rows := map[string]Declined{}
	for path, hash := range d {
		sum := sha256.Sum256([]byte(path))
		name := fmt.Sprintf("%s%02x", declinedRow, sum[0])
		if rows[name] == nil {
			rows[name] = Declined{}
		}
		rows[name][path] = hash
	}
	return rows
}

// Retain deletes what is stored of destinations for which keep returns false.
func (l *Log) Retain(ctx context.Context, keep func(types.UID) bool) error {
	var dropped []string
	for key, err := range l.Table.Keys(ctx, "") {
		if err != nil {
			return fmt.Errorf("read the pull requests of destinations: %w", err)
		}
		if uid, _, _ := strings.Cut(key, "/"); !keep(types.UID(uid)) {
			dropped = append(dropped, key)
		}
	}
	if err := l.Table.Delete(ctx, dropped...); err != nil {
		return fmt.Errorf("delete pull requests of deleted destinations: %w", err)
	}
	return nil
}
